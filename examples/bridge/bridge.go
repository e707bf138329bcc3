package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/internal/sockerr"
)

// A stream is a connection whose halves end separately, over TCP or rsockets.
type stream interface {
	net.Conn
	CloseWrite() error
}

// A bridge connects incoming connections to a target.
type bridge struct {
	target string
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)

	mu  sync.Mutex // of log
	log io.Writer
}

// serve joins connections until ctx ends, and then ends them.
func (b *bridge) serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	closing := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer closing()
	for {
		c, err := sockerr.Accept(ctx, l)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return errors.Join(err, l.Close())
		}
		all.Go(func() {
			if err := b.join(ctx, c); err != nil && ctx.Err() == nil {
				b.mu.Lock()
				defer b.mu.Unlock()
				_, _ = fmt.Fprintf(b.log, "bridge: %v: %v\n", c.RemoteAddr(), err)
			}
		})
	}
}

// join connects c to the target, and moves octets until both directions have ended.
func (b *bridge) join(ctx context.Context, c net.Conn) error {
	t, err := b.dial(ctx, "tcp", b.target)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	stop := program.AtEnd(ctx, func() { closeBoth(c, t) })
	there := make(chan error, 1)
	go func() { there <- move(t.(stream), c) }()
	err = errors.Join(move(c.(stream), t), <-there)
	stop()
	closeBoth(c, t)
	return err
}

// move copies one direction, and passes its end on. After an error the other direction ends, too.
func move(to stream, from net.Conn) error {
	_, err := io.Copy(to, from)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		closeBoth(to, from)
	}
	return err
}

// closeBoth closes two connections at the same time, since either may wait for its peer.
func closeBoth(a, b net.Conn) {
	var all sync.WaitGroup
	all.Go(func() { _ = a.Close() })
	all.Go(func() { _ = b.Close() })
	all.Wait()
}

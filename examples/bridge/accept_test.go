package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fullProcess is a listener of a process that at first has no file descriptor left.
type fullProcess struct {
	net.Listener
	fails int
	conns chan net.Conn
	once  sync.Once
}

func (c *fullProcess) Accept() (net.Conn, error) {
	if c.fails--; c.fails >= 0 {
		return nil, &net.OpError{Op: "accept", Err: fmt.Errorf("accept4: %w", syscall.EMFILE)}
	}
	conn, ok := <-c.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (c *fullProcess) Close() error {
	c.once.Do(func() { close(c.conns) })
	return nil
}

// A half is an end of a net.Pipe that can be closed for writing.
type half struct{ net.Conn }

func (h half) CloseWrite() error { return h.Close() }

// TestTooManyOpenFiles: clients that use up the descriptors do not end the bridge, nor the connections of all others.
func TestTooManyOpenFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := &fullProcess{fails: 100, conns: make(chan net.Conn, 1)}
		client, accepted := net.Pipe()
		target, dialled := net.Pipe()
		l.conns <- half{accepted}
		b := &bridge{log: io.Discard, dial: func(context.Context, string, string) (net.Conn, error) { return half{dialled}, nil }}
		ended := make(chan error, 1)
		go func() { ended <- b.serve(ctx, l) }()
		go func() { _, _ = client.Write([]byte("x")) }()
		require.NoError(t, target.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err := io.ReadFull(target, make([]byte, 1))
		require.NoError(t, err)
		stop()
		require.NoError(t, <-ended)
	})
}

// TestTooManyOpenFilesAtTheEnd: they do not keep the bridge from its end.
func TestTooManyOpenFilesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := &fullProcess{fails: 1 << 30, conns: make(chan net.Conn)}
		ended := make(chan error, 1)
		go func() { ended <- (&bridge{log: io.Discard}).serve(ctx, l) }()
		synctest.Wait()
		stop()
		require.NoError(t, <-ended)
	})
}

// A slowEnd is a connection whose first Close waits, as a rsocket's does if its peer is slow to take what was written.
type slowEnd struct {
	half
	once sync.Once
	end  chan struct{}
}

func (s *slowEnd) CloseWrite() error { return s.Close() }

func (s *slowEnd) Close() error {
	err := net.ErrClosed
	first := false
	s.once.Do(func() { first = true })
	if first {
		err = s.half.Close()
		<-s.end
	}
	return err
}

// TestTheBridgeEndsBehindItsConnections: after them it closes the RNIC. A peer with librdmacm would wait for ever for
// the end of a stream that the RNIC has cut.
func TestTheBridgeEndsBehindItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := &fullProcess{conns: make(chan net.Conn, 1)}
		_, accepted := net.Pipe()
		_, dialled := net.Pipe()
		l.conns <- half{accepted}
		end := make(chan struct{})
		b := &bridge{log: io.Discard, dial: func(context.Context, string, string) (net.Conn, error) {
			return &slowEnd{half: half{dialled}, end: end}, nil
		}}
		ended := make(chan error, 1)
		go func() { ended <- b.serve(ctx, l) }()
		synctest.Wait()
		stop()
		synctest.Wait()
		require.Empty(t, ended)
		close(end)
		require.NoError(t, <-ended)
	})
}

package rpcrdma

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
)

// backlog is how many connections that Accept has not returned may be established or being established. Others wait in
// set-up, see ListenConfig.MaxHalfOpen.
const backlog = 128

// A Listener is a net.Listener for connections of clients. It holds at most 128 connections that Accept has not
// returned; further clients wait.
type Listener struct {
	l      *iwarp.Listener
	s      *shared
	err    error // of the configuration
	ctx    context.Context
	cancel context.CancelFunc
	conns  chan *Conn
	places chan struct{} // one for each connection that Accept has not returned
	tasks  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	live   map[*Conn]struct{}
}

// NewListener returns a Listener whose connections carry RPC with record marks, as Conn.Records does, for any
// ONC RPC server. Config.MaxBytes bounds all of them together. l belongs to the Listener. If cfg is not valid, Accept
// returns the error.
func NewListener(l *iwarp.Listener, cfg *Config) *Listener {
	n := &Listener{l: l, conns: make(chan *Conn), places: make(chan struct{}, backlog), live: make(map[*Conn]struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if n.s, n.err = newShared(cfg); n.err == nil {
		n.tasks.Go(func() {
			_ = l.Serve(n.ctx, n.handle)
			n.cancel() // the RNIC has ended
		})
	}
	return n
}

// handle sets a connection up, and hands it to Accept. The RNIC counts the attempts that fail in RNICStats.Refused;
// Config.Refused is called with the cause.
func (n *Listener) handle(cr *iwarp.ConnRequest) {
	if !n.enter() {
		return
	}
	defer n.tasks.Done()
	select {
	case n.places <- struct{}{}:
		defer func() { <-n.places }()
	case <-n.ctx.Done():
		return
	}
	c, err := n.s.accept(n.ctx, cr, n.left)
	if err != nil {
		if n.s.cfg.Refused != nil && n.ctx.Err() == nil {
			n.s.cfg.Refused(cr.RemoteAddr(), err)
		}
		return
	}
	n.mu.Lock()
	if !closed.Is(c.done) {
		n.live[c] = struct{}{}
	}
	n.mu.Unlock()
	select {
	case n.conns <- c:
	case <-c.done:
	case <-n.ctx.Done():
		c.abort()
	}
}

func (n *Listener) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.tasks.Add(1)
	}
	return !n.closed
}

func (n *Listener) left(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, c)
}

// Accept waits for the next connection.
func (n *Listener) Accept() (net.Conn, error) {
	if n.err != nil {
		return nil, n.err
	}
	select {
	case c := <-n.conns:
		return c.Records(), nil
	case <-n.ctx.Done():
		return nil, errListener
	}
}

var errListener = &net.OpError{Op: "accept", Net: "rpcrdma", Err: net.ErrClosed}

// Addr returns the address that the listener is bound to.
func (n *Listener) Addr() net.Addr { return n.l.Addr() }

// Close stops accepting connections. Connections that Accept has returned stay open.
func (n *Listener) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.cancel()
	err := n.l.Close()
	n.tasks.Wait()
	return err
}

// Shutdown closes the listener, and ends each of its connections when its calls are answered. See Conn.Shutdown.
func (n *Listener) Shutdown(ctx context.Context) error {
	errs := []error{n.Close()}
	n.mu.Lock()
	ended := make(chan error, len(n.live))
	count := len(n.live)
	for c := range n.live {
		go func() { ended <- c.Shutdown(ctx) }()
	}
	n.mu.Unlock()
	for range count {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

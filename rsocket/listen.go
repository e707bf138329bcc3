package rsocket

import (
	"context"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
)

// backlog is how many connections that Accept has not returned may be established or being
// established. Others wait in set-up, see ListenConfig.MaxHalfOpen.
const backlog = 128

// A Listener is a net.Listener of Conns. Connections are set up in parallel, so that a slow peer does not
// delay others, and peers that do not use rsockets are refused without an error from Accept.
type Listener struct {
	rnic   *iwarp.RNIC
	l      *iwarp.Listener
	cfg    *Config
	ready  chan *Conn
	places chan struct{}
	ctx    context.Context // of the Listener
	stop   context.CancelFunc
	mu     sync.Mutex // orders work.Add and stop
	work   sync.WaitGroup
}

var _ net.Listener = (*Listener)(nil)

// Listen listens for connections at addr. Networks and addresses are those of [iwarp.RNIC.Listen]. ctx bounds only
// the call itself.
func Listen(ctx context.Context, r *iwarp.RNIC, network, addr string, cfg *Config) (*Listener, error) {
	all, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	inner, err := r.Listen(ctx, network, addr, &all.Listen)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		rnic: r, l: inner, cfg: &all,
		ready: make(chan *Conn), places: make(chan struct{}, backlog),
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.work.Go(func() {
		_ = inner.Serve(l.ctx, l.handle)
		l.end() // the RNIC has ended
	})
	return l, nil
}

// begin counts a handler, unless the Listener ends.
func (l *Listener) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.work.Add(1)
	return true
}

// end lets no more handlers begin.
func (l *Listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop()
}

// handle sets a connection up, and offers it to Accept. The RNIC counts the attempts that fail in RNICStats.Refused;
// Config.Refused is called with the cause.
func (l *Listener) handle(cr *iwarp.ConnRequest) {
	if !l.begin() {
		return
	}
	defer l.work.Done()
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-l.ctx.Done():
		return
	}
	c, err := Accept(l.ctx, l.rnic, cr, l.cfg)
	if err != nil {
		if l.cfg.Refused != nil && l.ctx.Err() == nil {
			l.cfg.Refused(cr.RemoteAddr(), err)
		}
		return
	}
	select {
	case l.ready <- c:
	case <-l.ctx.Done():
		c.drop()
	}
}

// Accept returns the next connection, which is established.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptConn is like Accept, but returns a *Conn.
func (l *Listener) AcceptConn() (*Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
		return nil, &net.OpError{Op: "accept", Net: "rsocket", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Addr returns the address that the Listener is bound to.
func (l *Listener) Addr() net.Addr { return l.l.Addr() }

// Close ends the Listener, and the connections that Accept has not returned. Connections that Accept has returned stay open.
func (l *Listener) Close() error {
	l.end()
	err := l.l.Close()
	l.work.Wait()
	return err
}

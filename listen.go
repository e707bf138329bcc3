package iwarp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// ListenConfig says how a listener treats connections; nil means defaults.
type ListenConfig struct {
	// SetupTimeout bounds TLS and the whole Request of a connection: 5 s by default.
	// Octets that trickle in do not extend it (RFC 5044 section 7.1.2 rule 10).
	SetupTimeout time.Duration
	// ProgressTimeout bounds how long nothing comes of a Request that is not complete: 2 s
	// by default, or SetupTimeout if that is less. Over SCTP it does not apply.
	ProgressTimeout time.Duration
	// MaxHalfOpen is how many connections may be in set-up, including those that the
	// application has not answered yet: Limits.MaxHalfOpen by default. Where that is
	// reached, a new connection takes the place of the oldest whose Request is not
	// complete, so that peers that leave theirs unfinished do not keep others out. Where
	// all wait for the application, further ones wait in the system's backlog.
	//
	// One costs a descriptor, a goroutine and some 10 KiB; with TLS about 30 KiB.
	MaxHalfOpen int
	// TLS wraps connections in TLS 1.3, below MPA.
	TLS *tls.Config
}

const (
	defaultSetupTimeout    = 5 * time.Second
	defaultProgressTimeout = 2 * time.Second
)

func (lc *ListenConfig) withDefaults(r *RNIC) (ListenConfig, error) {
	var c ListenConfig
	if lc != nil {
		c = *lc
	}
	if c.SetupTimeout == 0 {
		c.SetupTimeout = defaultSetupTimeout
	}
	if c.ProgressTimeout == 0 {
		c.ProgressTimeout = min(defaultProgressTimeout, c.SetupTimeout)
	}
	if c.MaxHalfOpen == 0 {
		c.MaxHalfOpen = r.limits.MaxHalfOpen
	}
	if c.SetupTimeout < 0 || c.ProgressTimeout < 0 || c.MaxHalfOpen < 0 {
		return c, fmt.Errorf("iwarp: ListenConfig.SetupTimeout is %v, ProgressTimeout %v and MaxHalfOpen %d, and none may be negative",
			c.SetupTimeout, c.ProgressTimeout, c.MaxHalfOpen)
	}
	if c.MaxHalfOpen > r.limits.MaxHalfOpen {
		return c, fmt.Errorf("%w: ListenConfig.MaxHalfOpen is %d, at most %d", ErrLimit, c.MaxHalfOpen, r.limits.MaxHalfOpen)
	}
	return c, nil
}

// A Listener takes connections of initiators.
type Listener struct {
	rnic   *RNIC
	cfg    ListenConfig
	source source

	ctx     context.Context // ends with the listener
	cancel  context.CancelCauseFunc
	opening halfOpen
	arrived chan *ConnRequest // Requests that wait for Accept
	once    sync.Once

	mu     sync.Mutex
	outage error // why no connection can be taken now; nil: they can
}

var errListenerClosed = fmt.Errorf("iwarp: listener closed: %w", net.ErrClosed)

// Listen takes connections at addr; for the networks see [RNIC.Dial]. ctx bounds
// only the call itself.
func (r *RNIC) Listen(ctx context.Context, network, addr string, lc *ListenConfig) (*Listener, error) {
	cfg, err := lc.withDefaults(r)
	if err != nil {
		return nil, err
	}
	src, err := r.source(ctx, network, addr, cfg)
	if err != nil {
		return nil, fmt.Errorf("iwarp: %w", listenError(transport.Exhausted(err)))
	}
	l := &Listener{
		rnic: r, cfg: cfg, source: src,
		arrived: make(chan *ConnRequest, cfg.MaxHalfOpen),
	}
	l.opening.init(cfg.MaxHalfOpen)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refusal(); err != nil {
		_ = src.Close()
		return nil, err
	}
	r.listeners[l] = struct{}{}
	r.tasks.start(l.run)
	return l, nil
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() net.Addr { return l.source.Addr() }

// Accept returns the next connection request, which the caller must accept or
// reject. While the listener can take no connection, because the process has no file
// descriptor left for example, Accept waits until it can again; the Logger is told when
// that begins, and if ctx ends meanwhile the error says so.
func (l *Listener) Accept(ctx context.Context) (*ConnRequest, error) {
	select {
	case cr := <-l.arrived:
		return cr, nil
	default:
	}
	select {
	case cr := <-l.arrived:
		return cr, nil
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	case <-ctx.Done():
		if err := l.trouble(); err != nil {
			return nil, fmt.Errorf("iwarp: accept: %w, and no connection can be taken: %w", ctx.Err(), err)
		}
		return nil, fmt.Errorf("iwarp: accept: %w", ctx.Err())
	}
}

func (l *Listener) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outage
}

// troubled notes whether connections can be taken, and logs it where that changes.
func (l *Listener) troubled(err error) {
	l.mu.Lock()
	was := l.outage
	l.outage = err
	l.mu.Unlock()
	switch {
	case err != nil && was == nil:
		l.rnic.log.Error("no connection can be taken", "addr", l.Addr(), "err", err)
	case err == nil && was != nil:
		l.rnic.log.Info("connections can be taken again", "addr", l.Addr())
	}
}

// Close ends the listener and every connection that is still in set-up and was not
// returned by Accept. Established QPs, and requests that Accept has returned, live
// on.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		l.cancel(errListenerClosed)
		err = l.source.Close()
		l.rnic.mu.Lock()
		delete(l.rnic.listeners, l)
		l.rnic.mu.Unlock()
	})
	return err
}

// run accepts connections until the listener is closed, then drops what waits.
func (l *Listener) run() {
	var setups sync.WaitGroup
	for {
		setup, err := l.next()
		if err != nil {
			if l.ctx.Err() != nil {
				break
			}
			l.troubled(transport.Exhausted(err))
			l.pause()
			continue
		}
		l.troubled(nil)
		ctx, cancel := context.WithCancelCause(l.ctx)
		complete := func() {}
		if !l.source.complete() {
			complete = l.opening.asking.Add(func() { cancel(errEvicted) })
		}
		setups.Add(1)
		l.rnic.tasks.start(func() {
			defer setups.Done()
			defer cancel(nil)
			cr, err := setup(ctx, l.opening.leave)
			complete()
			l.queue(ctx, cr, err)
		})
	}
	setups.Wait()
	for {
		select {
		case cr := <-l.arrived:
			cr.close()
		default:
			return
		}
	}
}

// next returns the next connection, with a place among those that are being set up. When
// the listener is closed the place need not be there: the set-up ends before it has begun.
func (l *Listener) next() (setup, error) {
	early := l.source.complete()
	if early && !l.opening.enter(l.ctx) {
		return nil, errListenerClosed
	}
	s, err := l.source.accept()
	switch {
	case err != nil && early:
		l.opening.leave()
	case err == nil && !early:
		l.opening.enter(l.ctx)
	}
	return s, err
}

// pause keeps a lasting error of accept, such as too many open files, from turning
// into a busy loop.
func (l *Listener) pause() {
	const backoff = 50 * time.Millisecond
	select {
	case <-time.After(backoff):
	case <-l.ctx.Done():
	}
}

// queue takes what has come of a set-up, which is a request for Accept, or why there is
// none. ctx is that of the set-up.
func (l *Listener) queue(ctx context.Context, cr *ConnRequest, err error) {
	switch {
	case err != nil && l.ctx.Err() == nil:
		l.rnic.log.Info("connection refused during set-up", "err", err)
		return
	case err != nil:
		return
	case ctx.Err() != nil: // it was given up just then, and somebody waits for its place
		cr.close()
		return
	}
	select {
	case l.arrived <- cr:
	case <-l.ctx.Done():
		cr.close()
	}
}

// Server makes the responder of an existing connection: it reads the initiator's
// Request. From now on c belongs to the ConnRequest, and to the QP that accepts it: see
// [RNIC.Client]. After an error c is closed. A nil c is an error.
func (r *RNIC) Server(ctx context.Context, c net.Conn, lc *ListenConfig) (*ConnRequest, error) {
	if isNil(c) {
		return nil, errNoConn("server")
	}
	cfg, err := lc.withDefaults(r)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	cr, err := r.request(ctx, c, cfg, func() {})
	if err != nil {
		return nil, fmt.Errorf("iwarp: server: %w", err)
	}
	return cr, nil
}

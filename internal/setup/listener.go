package setup

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/transport"
)

// A Listener accepts connections from initiators.
type Listener struct {
	manager *Manager
	source  source

	ctx     context.Context // ends with the listener
	cancel  context.CancelCauseFunc
	opening halfOpen
	arrived chan *Request // requests that wait for Accept
	once    sync.Once

	mu     lockorder.Mutex[lockorder.Leaf]
	outage error // why connections cannot be accepted now; nil: they can
}

var errListenerClosed = fmt.Errorf("listener closed: %w", net.ErrClosed)

// Listen accepts connections at addr until the Listener is closed or Refuse is called. ctx
// bounds only the call itself.
func (m *Manager) Listen(ctx context.Context, network, addr string, cfg ListenConfig) (*Listener, error) {
	src, err := m.source(ctx, network, addr, cfg)
	if err != nil {
		return nil, listenError(transport.Exhausted(err))
	}
	return m.listen(src, cfg)
}

// listen accepts the connections of a source.
func (m *Manager) listen(src source, cfg ListenConfig) (*Listener, error) {
	l := &Listener{manager: m, source: src, arrived: make(chan *Request, cfg.MaxHalfOpen)}
	l.opening.init(cfg.MaxHalfOpen)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused != nil {
		_ = src.Close()
		return nil, m.refused
	}
	m.listeners[l] = struct{}{}
	m.cfg.Start(l.run)
	return l, nil
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() net.Addr { return l.source.Addr() }

// Accept returns the next request, which the caller must accept, reject or close. While the
// listener cannot accept connections, Accept waits until it can again. The log records when such
// an outage begins, and if ctx ends during the outage the error says so.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	select {
	case q := <-l.arrived:
		return q, nil
	default:
	}
	select {
	case q := <-l.arrived:
		return q, nil
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	case <-ctx.Done():
		if err := l.trouble(); err != nil {
			return nil, fmt.Errorf("accept: %w, and no connection can be taken: %w", ctx.Err(), err)
		}
		return nil, fmt.Errorf("accept: %w", ctx.Err())
	}
}

func (l *Listener) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outage
}

// setOutage records why connections cannot be accepted, nil if they can, and logs a change.
func (l *Listener) setOutage(err error) {
	l.mu.Lock()
	was := l.outage
	l.outage = err
	l.mu.Unlock()
	switch {
	case err != nil && was == nil:
		l.manager.cfg.Log.Error("no connection can be taken", logkey.Addr, l.Addr().String(), logkey.Err, err)
	case err == nil && was != nil:
		l.manager.cfg.Log.Info("connections can be taken again", logkey.Addr, l.Addr().String())
	}
}

// Close ends the listener and every connection that is still in set-up and was not
// returned by Accept. Established connections, and requests that Accept has returned,
// continue.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		l.cancel(errListenerClosed)
		err = l.source.Close()
		l.manager.mu.Lock()
		delete(l.manager.listeners, l)
		l.manager.mu.Unlock()
	})
	return err
}

// run accepts connections until the listener is closed, then closes the requests that wait.
func (l *Listener) run() {
	var setups sync.WaitGroup
	for {
		open, err := l.next()
		if err != nil {
			if l.ctx.Err() != nil {
				break
			}
			l.setOutage(transport.Exhausted(err))
			l.pause()
			continue
		}
		l.setOutage(transport.Exhausted(l.source.Outage()))
		ctx, cancel := context.WithCancelCause(l.ctx)
		complete := func() {}
		if !l.source.complete() {
			complete = l.opening.asking.Add(func() { cancel(errEvicted) })
		}
		setups.Add(1)
		l.manager.cfg.Start(func() {
			defer setups.Done()
			defer cancel(nil)
			q, err := open(ctx, watch{cancel, complete, l.opening.leave})
			complete() // also if there is no request
			l.queue(ctx, q, err)
		})
	}
	setups.Wait()
	for {
		select {
		case q := <-l.arrived:
			q.Close()
		default:
			return
		}
	}
}

// next returns the next connection, with a place among the connections in set-up. Once the
// listener is closed, it may have no place: the set-up then ends before it begins.
func (l *Listener) next() (opening, error) {
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

// queue takes the outcome of a set-up: a request for Accept, or why there is none. ctx is the
// context of the set-up.
func (l *Listener) queue(ctx context.Context, q *Request, err error) {
	switch {
	case err != nil && isAuthError(err):
		l.manager.refuse(err)
		l.manager.cfg.Log.Debug("connection refused during set-up", logkey.Err, err)
		return
	case err != nil && l.ctx.Err() == nil:
		l.manager.refuse(err)
		l.manager.cfg.Log.Info("connection refused during set-up", logkey.Err, err)
		return
	case err != nil:
		return
	case ctx.Err() != nil: // the set-up was given up just then, and another one waits for its place
		l.manager.refuse(context.Cause(ctx))
		q.Close()
		return
	}
	select {
	case l.arrived <- q:
	case <-l.ctx.Done():
		q.Close()
	}
}

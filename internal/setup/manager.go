// Package setup sets up connections from both sides: with MPA over a byte stream (RFC 5044
// section 7.1, RFC 6581), and as SCTP sessions (RFC 5043 section 6). The result is an LLP and
// the terms that the two ends have agreed on, which are passed to [Local.Establish]. The package
// knows nothing of queue pairs: a [Local] holds this side's parameters, and the functions to call
// between connecting and the first set-up message.
package setup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/transport"
)

// A Config describes how a Manager makes connections.
type Config struct {
	Log          *slog.Logger // for refused connections, and listeners that cannot accept any
	Poller       *transport.Poller
	PlainIO      bool          // drive all connections through package net
	PeerTimeout  time.Duration // for transport.SetPeerTimeout; 0 or less: none is set
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	Start        func(f func()) // runs f in a goroutine

	// Closed is the cause with which Refuse ends exchanges, and refuses for good.
	Closed error
	// Auth is matched by errors about a peer that was not authenticated.
	Auth error
	// Unsupported is matched by errors about missing features.
	Unsupported error
	// Limit is matched by errors about values above a limit. MaxHalfOpen is the maximum of
	// ListenConfig.MaxHalfOpen, and its default.
	Limit       error
	MaxHalfOpen int
}

// A Manager sets up the connections of one RNIC.
type Manager struct {
	cfg     Config
	clients map[string]sessionClient // by network

	lasts     context.Context    // ends with Refuse
	end       context.CancelFunc // ends lasts
	exchanges sync.WaitGroup     // of set-up messages
	outcomes  outcomes

	mu        lockorder.Mutex[lockorder.Setups]
	refused   error                  // why new connections are refused; nil: they are not
	pending   map[io.Closer]struct{} // what is being set up
	listeners map[*Listener]struct{}
	sessions  []sessionListener   // listeners, open or not, that still have associations
	slowPaths map[string]struct{} // paths that were logged
}

// New returns a Manager.
func New(cfg Config) *Manager {
	m := &Manager{cfg: cfg, pending: make(map[io.Closer]struct{}), listeners: make(map[*Listener]struct{}), slowPaths: make(map[string]struct{})}
	m.lasts, m.end = context.WithCancel(context.Background())
	m.clients = m.sessionClients()
	return m
}

// Refuse makes every new set-up fail with cause, closes the listeners, and ends the set-ups in
// progress. It does not wait. Refuse may be called again with another cause, which replaces the
// previous one unless that was Config.Closed.
func (m *Manager) Refuse(cause error) {
	var closers []io.Closer
	m.mu.Lock()
	if !errors.Is(m.refused, m.cfg.Closed) {
		m.refused = cause
	}
	for l := range m.listeners {
		closers = append(closers, l)
	}
	for c := range m.pending {
		closers = append(closers, c)
	}
	m.mu.Unlock()
	m.end()
	for _, c := range closers {
		if o, ok := c.(*mpaOffer); ok {
			m.cfg.Start(func() { _ = o.Close() }) // Close of a net.Conn may block
			continue
		}
		_ = c.Close() // a session tells the peer before Manager.Close ends the association
	}
}

// Wait returns when every exchange of set-up messages that began before Refuse has ended,
// including its call of [Local.Establish].
func (m *Manager) Wait() { m.exchanges.Wait() }

// Close ends the SCTP associations. Refuse must have been called, and no session may use them any
// more. It ends all associations at the same time, because a peer that is silent takes half a second.
func (m *Manager) Close() {
	m.mu.Lock()
	sessions := m.sessions
	clear(m.pending) // requests that the application never answered: Refuse has closed them
	m.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range sessions {
		ending.Go(s.End)
	}
	for _, c := range m.clients {
		ending.Go(c.Close)
	}
	ending.Wait()
}

// Pending returns how many connections are being set up, including those that the application
// has not answered yet.
func (m *Manager) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pending)
}

// refusal returns why new connections are refused, or nil if they are not.
func (m *Manager) refusal() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// watch makes Refuse close c, a connection that is being set up; unwatch reverts watch.
func (m *Manager) watch(c io.Closer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused != nil {
		return m.refused
	}
	m.pending[c] = struct{}{}
	return nil
}

func (m *Manager) unwatch(c io.Closer) {
	m.mu.Lock()
	delete(m.pending, c)
	m.mu.Unlock()
}

// Within calls f, a part of a set-up that may run code of the application, under a context that ends
// with ctx or with Refuse.
func (m *Manager) Within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(m.lasts, func() { end(m.cfg.Closed) })()
	err := f(ctx)
	if _, rejected := errors.AsType[*RejectError](err); rejected || errors.Is(err, net.ErrClosed) { // err says what happened already
		return err
	}
	return m.endedBy(ctx, err)
}

// begin calls f, which performs the steps before an exchange of set-up messages, under a context that
// ends with ctx or with Refuse.
func (m *Manager) begin(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	e := &exchange{end: end, cause: m.cfg.Closed}
	if err := m.watch(e); err != nil {
		return err
	}
	defer m.unwatch(e)
	return m.endedBy(ctx, f(ctx))
}

// exchange begins an exchange of set-up messages, which ends with ctx or with Refuse. Until both ends
// have sent a message, such an end closes the connection. From then on, Establish tells the peer of the
// failure. The caller must call the returned function after Establish. The exchange answers the offer o,
// which is watched as a part of it; a session stays watched afterwards, since it may remain unanswered.
// If o is nil, this side is the initiator.
func (m *Manager) exchange(ctx context.Context, o offer) (context.Context, func(), error) {
	ctx, end := context.WithCancelCause(ctx)
	e := &exchange{end: end, cause: m.cfg.Closed, answers: o}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused != nil {
		end(nil)
		return nil, nil, m.refused
	}
	if o != nil {
		delete(m.pending, o)
	}
	m.pending[e] = struct{}{}
	m.exchanges.Add(1)
	return ctx, func() {
		m.leave(e)
		end(nil)
		m.exchanges.Done()
	}, nil
}

// leave stops watching e, but continues to watch its session: closing an answered session does nothing.
func (m *Manager) leave(e *exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, e)
	if s, ok := e.answers.(sessionOffer); ok {
		m.pending[s] = struct{}{}
	}
}

// An exchange is an exchange of set-up messages, or the steps before it, that Refuse ends.
type exchange struct {
	end     context.CancelCauseFunc
	cause   error
	answers offer // nil: none
}

func (e *exchange) Close() error {
	e.end(e.cause) // first: this is also why the offer can no longer be accepted
	if s, ok := e.answers.(sessionOffer); ok {
		_ = s.Close() // does nothing if it was answered; must precede Manager.Close, which ends the association
	}
	return nil
}

// endedBy returns err, or the error of the RNIC's end if that ended the exchange of ctx.
func (m *Manager) endedBy(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, m.cfg.Closed) && errors.Is(cause, m.cfg.Closed) {
		return cause
	}
	return err
}

// stream returns a Stream that drives a connection.
func (m *Manager) stream(c net.Conn) transport.Stream {
	if m.cfg.PlainIO {
		return transport.NewPlainStream(c, m.cfg.Poller)
	}
	return transport.NewStream(c, m.cfg.Poller)
}

// options returns the options of the connections that a Manager makes or accepts.
func (m *Manager) options() transport.Options {
	return transport.Options{PeerTimeout: max(0, m.cfg.PeerTimeout)}
}

// bindPeerTimeout sets Config.PeerTimeout on a connection of the application.
func (m *Manager) bindPeerTimeout(c net.Conn) error {
	if d := m.cfg.PeerTimeout; d > 0 {
		return transport.SetPeerTimeout(c, d)
	}
	return nil
}

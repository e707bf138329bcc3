// Package setup sets connections up, from both sides: with MPA over a byte stream (RFC 5044
// section 7.1, RFC 6581), and as sessions of SCTP (RFC 5043 section 6). What comes out is an
// LLP and what the two ends have agreed on, which [Local.Establish] takes. The package knows
// nothing of queue pairs: what this side wants, and what happens between the connection
// and the first message of set-up, is in a [Local].
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

// A Config says how the connections of a Manager are made.
type Config struct {
	Log          *slog.Logger // of connections that are refused, and of listeners that can take none
	Poller       *transport.Poller
	PlainIO      bool          // drive all connections through package net
	PeerTimeout  time.Duration // of transport.SetPeerTimeout; 0 or less: none is set
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	Start        func(f func()) // runs f in a goroutine

	// Closed is the cause with which Refuse ends exchanges, and refuses for good.
	Closed error
	// Auth is matched by the errors of a peer that was not authenticated.
	Auth error
	// Unsupported is matched by the errors of what there is not.
	Unsupported error
	// Limit is matched by the errors of what is above a limit: MaxHalfOpen, the most that
	// ListenConfig.MaxHalfOpen may be, and its default.
	Limit       error
	MaxHalfOpen int
}

// A Manager sets up the connections of one RNIC.
type Manager struct {
	cfg     Config
	clients map[string]sessionClient // by network

	lasts     context.Context    // ends with Refuse
	end       context.CancelFunc // ends it
	exchanges sync.WaitGroup     // of set-up messages
	outcomes  outcomes

	mu        lockorder.Mutex[lockorder.Setups]
	refused   error                  // why there are no new connections; nil: there are
	pending   map[io.Closer]struct{} // what is being set up
	listeners map[*Listener]struct{}
	sessions  []sessionListener   // those, open or not, that still have associations
	slowPaths map[string]struct{} // those that were logged
}

// New makes a Manager.
func New(cfg Config) *Manager {
	m := &Manager{cfg: cfg, pending: make(map[io.Closer]struct{}), listeners: make(map[*Listener]struct{}), slowPaths: make(map[string]struct{})}
	m.lasts, m.end = context.WithCancel(context.Background())
	m.clients = m.sessionClients()
	return m
}

// Refuse has everything new fail with cause, closes the listeners, and ends what is being
// set up. It does not wait. A Manager may refuse once more for another cause, unless that was
// Config.Closed.
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
			m.cfg.Start(func() { _ = o.Close() }) // that of a net.Conn may be held up
			continue
		}
		_ = c.Close() // that of a session says so to the peer before Close ends the association
	}
}

// Wait returns when every exchange of set-up messages that had begun before Refuse has
// ended, and with it [Local.Establish].
func (m *Manager) Wait() { m.exchanges.Wait() }

// Close ends the associations of SCTP, once no session uses them any more and Refuse was
// called: all at the same time, because a peer that is silent takes up half a second.
func (m *Manager) Close() {
	m.mu.Lock()
	sessions := m.sessions
	clear(m.pending) // requests that the application has never answered: Refuse has closed them
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

// Pending tells how many connections are being set up, those that the application has not
// answered yet included.
func (m *Manager) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pending)
}

// refusal is why there are no new connections, nil if there are.
func (m *Manager) refusal() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// watch makes Refuse close a connection that is being set up; unwatch undoes it.
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

// Within calls f, which is a part of a set-up that may run code of the program, under a context that
// ends with ctx or with Refuse.
func (m *Manager) Within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(m.lasts, func() { end(m.cfg.Closed) })()
	err := f(ctx)
	if _, rejected := errors.AsType[*RejectError](err); rejected || errors.Is(err, net.ErrClosed) { // it tells of the connection already
		return err
	}
	return m.endedBy(ctx, err)
}

// begin calls f, which does what comes before an exchange of set-up messages, under a context that
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

// exchange begins an exchange of set-up messages, which ends with ctx or with Refuse. Until
// both ends have spoken that ends the connection. From then on it is a failure that the
// peer is told of, by Establish. The function that it returns belongs after Establish. The exchange
// answers o, which is watched as a part of it, and afterwards if it is a session: it may have no answer. nil: it asks.
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

// leave ends the watch over e, but not that over a session: to close one that was answered does nothing.
func (m *Manager) leave(e *exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, e)
	if s, ok := e.answers.(sessionOffer); ok {
		m.pending[s] = struct{}{}
	}
}

// An exchange is one that Refuse ends, or what comes before one.
type exchange struct {
	end     context.CancelCauseFunc
	cause   error
	answers offer // nil: none
}

func (e *exchange) Close() error {
	e.end(e.cause) // first: it is also why the offer can be accepted no more
	if s, ok := e.answers.(sessionOffer); ok {
		_ = s.Close() // unless it is answered; before Manager.Close ends the association
	}
	return nil
}

// endedBy is err, or that the RNIC was closed if that ended the exchange of ctx.
func (m *Manager) endedBy(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, m.cfg.Closed) && errors.Is(cause, m.cfg.Closed) {
		return cause
	}
	return err
}

// stream makes a Stream of a connection.
func (m *Manager) stream(c net.Conn) transport.Stream {
	if m.cfg.PlainIO {
		return transport.NewPlainStream(c, m.cfg.Poller)
	}
	return transport.NewStream(c, m.cfg.Poller)
}

// options are those of the connections that a Manager makes or takes.
func (m *Manager) options() transport.Options {
	return transport.Options{PeerTimeout: max(0, m.cfg.PeerTimeout)}
}

// bindPeerTimeout sets Config.PeerTimeout on a connection of the application's.
func (m *Manager) bindPeerTimeout(c net.Conn) error {
	if d := m.cfg.PeerTimeout; d > 0 {
		return transport.SetPeerTimeout(c, d)
	}
	return nil
}

package iwarp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/setup"
)

// ListenConfig configures a Listener; nil means the defaults.
type ListenConfig struct {
	// SetupTimeout bounds the TLS handshake, the arrival of the whole Request, and the authentication of
	// a connection: 5 s by default. Like ProgressTimeout and MaxHalfOpen it must not be negative.
	// Octets that trickle in do not extend it (RFC 5044 section 7.1.2 rule 10). It also
	// bounds the sending of the answer, together with the wait for the first message if the
	// initiator must prove its identity by it.
	SetupTimeout time.Duration
	// ProgressTimeout bounds the time in which no octet of an incomplete Request arrives: 2 s
	// by default, or SetupTimeout if that is less. Over SCTP it does not apply.
	ProgressTimeout time.Duration
	// MaxHalfOpen limits the connections in set-up, including those that the application has
	// not answered yet: Limits.MaxHalfOpen by default. At the limit, a new connection replaces
	// the oldest one whose Request is incomplete, so that peers that do not complete their
	// Requests cannot keep others out. If all connections wait for the application, further
	// ones wait in the system's backlog.
	//
	// Each costs a descriptor, a goroutine and about 10 KiB; with TLS about 30 KiB, and up to 350 KiB if
	// the peer sends certificates of 256 KiB, the most that package tls accepts.
	MaxHalfOpen int
	// TLS wraps connections in TLS 1.3, below MPA.
	TLS *tls.Config
	// Admit is called with the address of each peer, by one goroutine, before anything is read
	// from its connection. An error closes the connection without an answer or a log entry. nil: all
	// peers may connect. [RNIC.Server], whose connection already exists, uses neither Admit nor
	// MaxHalfOpen.
	Admit func(remote net.Addr) error
	// Auth authenticates connections: every ConnRequest has passed it. nil: the peers may be anyone.
	Auth Authenticator
}

// complete checks a configuration and fills in the defaults.
func (r *RNIC) complete(lc *ListenConfig) (setup.ListenConfig, error) {
	var c setup.ListenConfig
	if lc != nil {
		c = setup.ListenConfig{
			SetupTimeout: lc.SetupTimeout, ProgressTimeout: lc.ProgressTimeout, MaxHalfOpen: lc.MaxHalfOpen, TLS: lc.TLS, Admit: lc.Admit,
		}
		if lc.Auth != nil {
			c.Seal = responds(lc.Auth)
		}
	}
	return r.setups.Complete(&c)
}

// auth returns the Authenticator of a listener, or nil if there is none.
func (lc *ListenConfig) auth() Authenticator {
	if lc == nil {
		return nil
	}
	return lc.Auth
}

// A Listener accepts connections from initiators.
type Listener struct {
	rnic     *RNIC
	listener *setup.Listener
	auth     Authenticator
}

// Listen listens for connections at addr; for the networks see [RNIC.Dial]. ctx bounds
// only the call itself.
func (r *RNIC) Listen(ctx context.Context, network, addr string, lc *ListenConfig) (*Listener, error) {
	cfg, err := r.complete(lc)
	if err != nil {
		return nil, err
	}
	l, err := r.setups.Listen(ctx, network, addr, cfg)
	if err != nil {
		return nil, fmt.Errorf("iwarp: %w", errtext.Clause(err))
	}
	return &Listener{rnic: r, listener: l, auth: lc.auth()}, nil
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

// Accept returns the next connection request, which the caller must accept or
// reject. While the listener cannot accept connections, for example because the process has
// no file descriptor left, Accept waits until it can again. The listener logs the beginning
// of such a time, and if ctx ends meanwhile the error says so.
func (l *Listener) Accept(ctx context.Context) (*ConnRequest, error) {
	q, err := l.listener.Accept(ctx)
	if err != nil {
		return nil, fmt.Errorf("iwarp: %w", errtext.Clause(err))
	}
	return newConnRequest(l.rnic, q, l.auth), nil
}

// Serve calls handle for each connection request, in a goroutine of its own, until ctx or the
// listener ends; the error says which. It does not wait for handlers. A request that handle has
// not answered when it returns is rejected.
//
// With an Authenticator, Serve is better than a loop in one goroutine, because [ConnRequest.Accept]
// waits for the initiator's first message: an initiator that never sends it would hold up all
// others. ListenConfig.MaxHalfOpen bounds the number of unanswered requests, and so of their
// goroutines.
func (l *Listener) Serve(ctx context.Context, handle func(*ConnRequest)) error {
	if handle == nil {
		return fmt.Errorf("iwarp: Serve: the function that handles requests is nil")
	}
	for {
		cr, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = cr.Reject(nil) }() // an error: it was answered
			handle(cr)
		}()
	}
}

// Close ends the listener and every connection that is still in set-up and was not
// returned by Accept. Established QPs, and requests that Accept has returned, remain.
func (l *Listener) Close() error { return l.listener.Close() }

// Server makes this side the responder on an existing connection: it reads the initiator's
// Request. From now on c belongs to the ConnRequest, and to the QP that accepts it: see
// [RNIC.Client]. After an error c is closed. A nil c is an error.
func (r *RNIC) Server(ctx context.Context, c net.Conn, lc *ListenConfig) (*ConnRequest, error) {
	if err := setup.CheckConn("server", c); err != nil {
		return nil, err
	}
	cfg, err := r.complete(lc)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	q, err := r.setups.Server(ctx, c, cfg)
	if err != nil {
		return nil, fmt.Errorf("iwarp: server: %w", errtext.Clause(err))
	}
	return newConnRequest(r, q, lc.auth()), nil
}

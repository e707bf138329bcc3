package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A source provides the connections of a listener.
type source interface {
	Addr() net.Addr
	Close() error
	// accept waits for the next connection. The opening that it returns continues the set-up.
	accept() (opening, error)
	// Outage returns why new peers cannot be accepted now, although accept has returned a request of an old one; nil if they can.
	Outage() error
	// complete reports whether the Requests of the connections that accept returns are complete
	// already. Such a connection is never given up for another one: it waits in the source for a place.
	complete() bool
}

// An opening reads the Request of a connection, and authenticates it.
type opening func(ctx context.Context, w watch) (*Request, error)

// A watch holds the functions to which an opening reports its progress.
type watch struct {
	giveUp   context.CancelCauseFunc // called if the peer makes no progress: ends the context of the opening
	complete func()                  // called when the Request is complete: no younger connection takes its place any more
	release  func()                  // called once, when the connection is no longer in set-up
}

// source listens on network, and returns the source of the connections.
func (m *Manager) source(ctx context.Context, network, addr string, cfg ListenConfig) (source, error) {
	if IsSCTP(network) {
		return m.sessionSource(ctx, network, addr, cfg)
	}
	if t := cfg.TLS; t != nil && len(t.Certificates) == 0 && t.GetCertificate == nil && t.GetConfigForClient == nil {
		return nil, errNoCertificate
	}
	l, err := transport.Listen(ctx, network, addr, m.options())
	if err != nil {
		return nil, err
	}
	return &connections{Listener: l, manager: m, cfg: cfg}, nil
}

// errNoCertificate is returned before the first client connects, as tls.Listen does.
var errNoCertificate = errors.New("ListenConfig.TLS has no Certificates, GetCertificate or GetConfigForClient")

// connections is the source of the connections of a net.Listener.
type connections struct {
	net.Listener
	manager *Manager
	cfg     ListenConfig
}

func (s *connections) complete() bool { return false }

func (s *connections) Outage() error { return nil }

func (s *connections) accept() (opening, error) {
	c, err := s.Accept()
	for err == nil && !s.cfg.admits(c.RemoteAddr()) {
		s.manager.outcomes.refused[counters.CauseNotAdmitted].Add(1)
		_ = c.Close()
		c, err = s.Accept()
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w watch) (*Request, error) {
		q, err := s.manager.serve(ctx, c, s.cfg, w)
		if err != nil {
			return nil, of(c.RemoteAddr(), err)
		}
		return q, nil
	}, nil
}

// of adds the address of the initiator to the error that refused its connection.
func of(remote net.Addr, err error) error {
	return fmt.Errorf("%v: %w", remote, errtext.Reword(err, errtext.Plain(err)))
}

// Server reads the Request of an existing connection. After an error c is closed.
func (m *Manager) Server(ctx context.Context, c net.Conn, cfg ListenConfig) (*Request, error) {
	if err := m.bindPeerTimeout(c); err != nil {
		_ = c.Close()
		m.refuse(err)
		return nil, m.failure(err, lack{missing: "all of an MPA Request"})
	}
	var q *Request
	err := m.Within(ctx, func(ctx context.Context) (err error) {
		ctx, giveUp := context.WithCancelCause(ctx)
		defer giveUp(nil)
		nothing := func() {}
		q, err = m.serve(ctx, c, cfg, watch{giveUp, nothing, nothing})
		return err
	})
	m.refuse(err)
	return q, err
}

// serve reads a Request, and authenticates it.
func (m *Manager) serve(ctx context.Context, c net.Conn, cfg ListenConfig, w watch) (*Request, error) {
	o := &mpaOffer{Conn: c}
	q, err := m.request(o, cfg.SetupTimeout, w.release)
	if err != nil {
		return nil, err
	}
	err = OrUndo(func(error) { q.Close() }, func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, cfg.SetupTimeout, errSetupTimeout)
		defer cancel()
		if err := m.readRequest(ctx, o, cfg, func() { w.giveUp(errNoProgress) }); err != nil {
			said := lack{missing: "all of an MPA Request"}
			if cfg.TLS == nil {
				said.tls = "ListenConfig.TLS"
			}
			return m.failure(err, said)
		}
		w.complete()
		return q.unseal(ctx, cfg)
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// readRequest reads the Request of o's peer. It calls giveUp, which ends ctx, if nothing arrives
// for too long.
func (m *Manager) readRequest(ctx context.Context, o *mpaOffer, cfg ListenConfig, giveUp func()) error {
	c := o.Conn
	p := progresses(c, cfg.ProgressTimeout, giveUp)
	defer p.settled()
	reads := net.Conn(p)
	if cfg.TLS != nil {
		var err error
		if reads, err = transport.TLSServer(ctx, p, cfg.TLS); err != nil {
			return tlsError(err)
		}
		c = reads
		if t, ok := reads.(*tls.Conn); ok {
			s := t.ConnectionState()
			o.secured = &s
		}
	}
	var err error
	if o.Request, err = mpa.ReadRequest(ctx, transport.NewStream(reads, nil)); err != nil {
		return err
	}
	// The Stream that has read the Request holds no more octets of the connection.
	o.Trace(func(transport.Stream, []byte) transport.Stream { return m.stream(c) })
	return nil
}

// An mpaOffer is a Request that arrived over a byte stream.
type mpaOffer struct {
	net.Conn
	*mpa.Request
	secured *tls.ConnectionState
}

func (o *mpaOffer) accept(ctx context.Context, l *Local) (transport.LLP, *mpa.Terms, error) {
	o.Trace(func(s transport.Stream, request []byte) transport.Stream {
		return l.traced(s, transport.TapOptions{Passive: true, Received: request})
	})
	conn, terms, err := o.Accept(ctx, l.options(), l.IRD, l.ORD, l.PrivateData)
	if err != nil {
		return nil, nil, err
	}
	return conn, terms, nil
}

func (o *mpaOffer) refuse(ctx context.Context, cause error) error { return o.Refuse(ctx, cause) }

func (o *mpaOffer) reject(ctx context.Context, ird, ord int, private []byte) error {
	return o.Reject(ctx, ird, ord, private)
}

package setup

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
	"github.com/goiwarp/iwarp/transport/sctpudp"
)

// A sessionClient opens sessions over one of the two SCTP back ends.
type sessionClient interface {
	Open(ctx context.Context, addr string) (sctp.Stream, error)
	Close()
}

// A sessionListener accepts sessions.
type sessionListener interface {
	Addr() net.Addr
	Accept() (*sctp.Request, error)
	Outage() error
	Close()
	Over() bool
	End()
}

// overUDP returns the configuration of SCTP over UDP.
func (m *Manager) overUDP() sctpudp.Config {
	return sctpudp.Config{PeerTimeout: m.cfg.PeerTimeout, ListenPacket: m.cfg.ListenPacket, Refused: m.refusedSession}
}

// overIP returns the configuration of the kernel's SCTP.
func (m *Manager) overIP() sctpkernel.Config {
	return sctpkernel.Config{PeerTimeout: m.cfg.PeerTimeout, Refused: m.refusedSession}
}

// refusedSession counts and logs a session that a listener refused before there was a Request.
func (m *Manager) refusedSession(remote net.Addr, err error) {
	err = of(remote, err)
	m.refuse(err)
	m.cfg.Log.Info("connection refused during set-up", logkey.Err, err)
}

// sessionClients returns the back ends by network.
func (m *Manager) sessionClients() map[string]sessionClient {
	return map[string]sessionClient{
		SCTP:    sctpkernel.NewClient(m.overIP()),
		SCTPUDP: sctpudp.NewClient(m.overUDP()),
	}
}

// listenForSessions opens a listener of the network's back end.
func (m *Manager) listenForSessions(ctx context.Context, network, addr string, backlog int) (sessionListener, error) {
	if network == SCTP {
		return sctpkernel.Listen(ctx, m.overIP(), addr, backlog)
	}
	return sctpudp.Listen(ctx, m.overUDP(), addr, backlog)
}

// sessions is the source of the sessions that peers request over SCTP.
type sessions struct {
	sessionListener
	manager *Manager
	cfg     ListenConfig
}

func (m *Manager) sessionSource(ctx context.Context, network, addr string, cfg ListenConfig) (source, error) {
	if cfg.TLS != nil {
		return nil, fmt.Errorf("%w: TLS over SCTP", m.cfg.Unsupported)
	}
	l, err := m.listenForSessions(ctx, network, addr, cfg.MaxHalfOpen)
	if err != nil {
		return nil, m.kernelError(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = append(slices.DeleteFunc(m.sessions, sessionListener.Over), l)
	return &sessions{sessionListener: l, manager: m, cfg: cfg}, nil
}

func (s *sessions) Close() error {
	s.sessionListener.Close()
	return nil
}

func (s *sessions) complete() bool { return true }

func (s *sessions) accept() (opening, error) {
	r, err := s.Accept()
	for err == nil && !s.cfg.admits(r.RemoteAddr()) {
		s.manager.outcomes.refused[counters.CauseNotAdmitted].Add(1)
		r.Close()
		r, err = s.Accept()
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w watch) (*Request, error) {
		q, err := s.manager.request(sessionOffer{r, s.manager}, s.cfg.SetupTimeout, w.release)
		if err != nil {
			return nil, err
		}
		err = OrUndo(func(error) { q.Close() }, func() error {
			ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.SetupTimeout, errSetupTimeout)
			defer cancel()
			return q.unseal(ctx, s.cfg)
		})
		if err != nil {
			return nil, of(r.RemoteAddr(), err)
		}
		return q, nil
	}, nil
}

// A sessionOffer is an Initiate that arrived over SCTP.
type sessionOffer struct {
	*sctp.Request
	manager *Manager
}

func (o sessionOffer) accept(_ context.Context, l *Local) (transport.LLP, *mpa.Terms, error) {
	if l.Trace != nil {
		return nil, nil, fmt.Errorf("%w: Trace over SCTP", o.manager.cfg.Unsupported)
	}
	conn, terms, err := o.Accept(l.session(), l.IRD, l.ORD, l.PrivateData)
	if err != nil {
		return nil, nil, err
	}
	return conn, sessionTerms(terms), nil
}

func (o sessionOffer) refuse(_ context.Context, cause error) error { return o.Refuse(cause) }

func (o sessionOffer) reject(_ context.Context, ird, ord int, private []byte) error {
	return o.Reject(ird, ord, private)
}

func (o sessionOffer) Close() error {
	o.Request.Close()
	return nil
}

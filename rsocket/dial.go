package rsocket

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/stream"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// Dial connects to a listener of this package, or to a program that uses librdmacm's rsockets. Networks
// and addresses are those of [iwarp.RNIC.Dial]; librdmacm supports only "tcp", "tcp4" and "tcp6".
func Dial(ctx context.Context, r *iwarp.RNIC, network, addr string, cfg *Config) (*Conn, error) {
	all, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	// A peer that is told a byte order other than its own leaves iWARP mode. An initiator does not
	// know the peer's order, and says little-endian.
	return connect(r, &all, 0, func(qc *iwarp.QPConfig) (*iwarp.QP, error) {
		return r.Dial(ctx, network, addr, qc)
	})
}

// Accept accepts a connection request from a listener of the program, whose TLS and Authenticator apply. If
// the initiator does not use rsockets, Accept rejects the request, and the error matches ErrProtocol.
func Accept(ctx context.Context, r *iwarp.RNIC, cr *iwarp.ConnRequest, cfg *Config) (*Conn, error) {
	all, err := cfg.withDefaults()
	if err != nil {
		_ = cr.Reject(nil)
		return nil, err
	}
	peer, err := wire.ParsePrivate(cr.PrivateData())
	if err != nil {
		_ = cr.Reject(nil)
		return nil, protocolError(err)
	}
	c, err := connect(r, &all, peer.Flags&wire.FlagNet, func(qc *iwarp.QPConfig) (*iwarp.QP, error) {
		qc.Auth = nil // Config.QP.Auth is for Dial; the listener's has authenticated cr
		qc.MPA.RTR = cmp.Or(qc.MPA.RTR, iwarp.RTRWrite|iwarp.RTRRead)
		return cr.Accept(ctx, qc)
	})
	if err != nil {
		_ = cr.Reject(nil) // has no effect on a request that was answered
	}
	return c, err
}

// Dialer returns a function that dials, for http.Transport.DialContext,
// grpc.WithContextDialer and the like.
//
// An http.Transport closes the connection of a request whose context has ended before that request returns, and an http.Server
// closes idle connections one after the other. If a peer no longer answers, each such [Conn.Close] takes the RNIC's CloseTimeout, and
// up to five seconds more if the peer has not taken what was written: choose a short iwarp.Config.CloseTimeout for them.
func Dialer(r *iwarp.RNIC, cfg *Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := Dial(ctx, r, network, addr, cfg)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

func protocolError(err error) error { return fmt.Errorf("%w: %w", ErrProtocol, err) }

// connect makes a Conn around the QP that establish returns.
func connect(r *iwarp.RNIC, cfg *Config, flags wire.Flags, establish func(*iwarp.QPConfig) (*iwarp.QP, error)) (*Conn, error) {
	m, err := newMemory(r, cfg, flags.Order())
	if err != nil {
		return nil, err
	}
	qc := cfg.QP
	qc.PD, qc.SendCQ, qc.RecvCQ = m.pd, m.cq, m.cq
	qc.SendDepth, qc.RecvDepth = stream.Depth, m.receives
	qc.PrivateData = m.private(cfg, flags).Append(nil)
	qc.Setup = func(ctx context.Context, qp *iwarp.QP) error {
		if err := postAll(qp, m); err != nil || cfg.QP.Setup == nil {
			return err
		}
		return cfg.QP.Setup(ctx, qp)
	}
	qp, err := establish(&qc)
	if err != nil {
		_ = m.release()
		return nil, err
	}
	peer, err := wire.ParsePrivate(qp.PrivateData())
	if err != nil {
		_ = qp.Abort()
		_ = m.release()
		return nil, protocolError(err)
	}
	return newConn(qp, m, cfg, peer), nil
}

// postAll posts all receives.
func postAll(qp *iwarp.QP, m *memory) error {
	sge := make([]iwarp.SGE, m.receives)
	wrs := make([]iwarp.RecvWR, m.receives)
	for i := range wrs {
		sge[i] = m.receive(i)
		wrs[i] = iwarp.RecvWR{ID: uint64(i), Local: sge[i : i+1]}
	}
	return qp.PostRecv(wrs...)
}

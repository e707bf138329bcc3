package iwarp

import (
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// Dial connects to a listener and returns an established QP. Networks are "tcp",
// "tcp4", "tcp6", "sctp", "sctp+udp", and "pipe" within the process. ctx bounds all of it:
// the connection, TLS, Setup and the exchange of MPA frames. If it ends when the peer has
// accepted already, the peer is told by a Terminate (2/0/05, RFC 6581 section 9.3).
//
// "sctp" is the SCTP of the kernel (RFC 5043), on Linux alone: elsewhere, and where the
// kernel has none, the error matches [ErrUnsupported]. An address is "host:port", or
// "host/host:port" for a peer, or a listener, at several addresses. "sctp+udp" is SCTP in
// user space over UDP (RFC 6951), on every system. An address is "host:port", or
// "host:udpport/sctpport" where the two ports differ. The two talk to each other where the
// kernel is told to use UDP.
//
// All QPs of an RNIC with one peer share an association, each on its own pair of streams.
// There is no TLS and no Trace; the options of MPA that are about its frames mean nothing.
//
// If the peer closes the connection without one octet of a Reply, as a peer does
// that knows only RFC 5044, Dial tries once more, with revision 1, on a new
// connection (RFC 6581 section 10); see MPAOptions.NoFallback. Over SCTP that is a Terminate in answer, and the second
// session negotiates no depths; a listener that has too many requests waiting answers in the same way (RFC 5043 section 6.4).
// A refusal of the peer's application is a *[RejectError]. Where the process has no file descriptor left, the user no
// epoll watch, or the system no local port or memory for sockets, the error says so and matches [transport.ErrExhausted].
func (r *RNIC) Dial(ctx context.Context, network, addr string, qc *QPConfig) (*QP, error) {
	return r.connect(ctx, qc, initiation{
		info:    &AuthInfo{Network: network, Target: addr},
		network: network,
		run:     func(ctx context.Context, l *setup.Local) error { return r.setups.Dial(ctx, network, addr, l) },
		failure: func(err error) error { return setup.DialError(network, addr, err) },
	})
}

// An initiation is how the connection of a QP is set up that this side asks for.
type initiation struct {
	info    *AuthInfo
	network string // empty: a connection that exists
	run     func(ctx context.Context, l *setup.Local) error
	failure func(err error) error // says which one has failed
}

// connect makes a QP, and sets its connection up.
func (r *RNIC) connect(ctx context.Context, qc *QPConfig, a initiation) (qp *QP, err error) {
	stages := qc.stages()
	err = r.setups.Within(ctx, func(ctx context.Context) error {
		return stages.Run(ctx, setup.StageQP, func() (err error) {
			qp, err = r.newQP(qc)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	err = setup.OrUndo(qp.abandon, func() error {
		return rejection(r.setups.Within(ctx, func(ctx context.Context) error { return a.connect(ctx, qp, stages) }))
	})
	if err != nil {
		return nil, a.failure(err)
	}
	return qp, nil
}

// connect sets the connection of a QP up.
func (a *initiation) connect(ctx context.Context, qp *QP, stages setup.StageTrace) error {
	l := qp.initiator(stages)
	if err := authenticates(ctx, qp, l, a.info); err != nil {
		return err
	}
	if err := qp.checkRequest(l, a.network); err != nil {
		return err
	}
	if err := a.run(ctx, l); err != nil {
		return err
	}
	return stages.Run(ctx, setup.StageReady, func() error { return nil })
}

// Client makes the initiator of an existing connection, which from now on belongs
// to the QP: the caller must not use c any more, not even to close it, for the QP of a
// TCP connection may have taken over its descriptor. Client cannot try again with
// revision 1 as Dial does: it then returns an error that matches ErrUnsupported. After a
// *[RejectError] c is still open and the caller's (RFC 5044 section 7.1.2); after any
// other error it is closed. A nil c is an error.
//
// Only a *net.TCPConn itself is driven by system calls of the library's own;
// everything else, a wrapper of one included, through its Read and Write. A wrapper should have
// a CloseWrite, as a *net.TCPConn has, and SetLinger, or a method Abort that resets the
// connection. Without CloseWrite an end that is graceful may destroy messages that the peer has
// not read yet; without the others the peer cannot tell an abort from a graceful end.
func (r *RNIC) Client(ctx context.Context, c net.Conn, qc *QPConfig) (*QP, error) {
	if err := setup.CheckConn("client", c); err != nil {
		return nil, err
	}
	begun := false
	qp, err := r.connect(ctx, qc, initiation{
		info: &AuthInfo{Network: setup.NetworkOf(c.LocalAddr()), Local: c.LocalAddr(), Remote: c.RemoteAddr()},
		run: func(ctx context.Context, l *setup.Local) error {
			begun = true
			return r.setups.Client(ctx, c, l)
		},
		failure: func(err error) error { return fmt.Errorf("iwarp: client: %w", errtext.Clause(err)) },
	})
	if !begun {
		_ = c.Close()
	}
	return qp, err
}

// initiator is the QP's side of a connection that it asks for.
func (qp *QP) initiator(stages setup.StageTrace) *setup.Local {
	l := qp.local(qp.offer(true))
	if qp.cfg.TLS != nil || qp.cfg.Auth != nil {
		qp.identity = authn.ForInitiator(&qp.mu, &authVerbs)
		l.Secured = qp.identity.Secured
	}
	l.TLS, l.NoFallback, l.Stages = qp.cfg.TLS, qp.cfg.MPA.NoFallback, stages
	l.Establish = func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
		if err := qp.establish(ctx, llp, terms, terms.RTR); err != nil {
			return err
		}
		if terms.Revision != 0 && !qp.identity.Proves() {
			qp.wakeSIW(0)
		}
		return nil
	}
	return l
}

// responder is the QP's side of a connection that it was asked for.
func (qp *QP) responder(asked []byte) *setup.Local {
	_, _, offered := commit.CutOffer(asked)
	l := qp.local(qp.offer(offered))
	l.Establish = func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
		return qp.establish(ctx, llp, terms, 0)
	}
	return l
}

// local is what the sides of an initiator and of a responder have in common.
func (qp *QP) local(private []byte) *setup.Local {
	prepare := qp.cfg.Setup
	qp.cfg.Setup = nil // an Event that is not read, or the program, may keep the QP for long, and with it what Setup refers to
	return &setup.Local{
		MPA: qp.cfg.MPA.options(), IRD: qp.cfg.IRD, ORD: qp.cfg.ORD, PrivateData: private, Trace: qp.cfg.Trace,
		Prepare: func(ctx context.Context) error {
			if prepare == nil {
				return nil
			}
			return prepare(ctx, qp)
		},
	}
}

// checkRequest finds out what is wrong with the Request before anything is connected.
func (qp *QP) checkRequest(l *setup.Local, network string) error {
	err := l.CheckRequest(network)
	if own, n := len(qp.cfg.PrivateData), len(l.PrivateData); err != nil && own < n {
		err = fmt.Errorf("%w; %d of them are the offer of CommitOptions.Negotiate", err, n-own)
	}
	return err
}

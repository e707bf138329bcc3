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
// the connection, TLS, Setup and the exchange of MPA frames. If ctx ends after the peer has
// accepted, a Terminate informs the peer (2/0/05, RFC 6581 section 9.3).
//
// "sctp" is the SCTP of the Linux kernel (RFC 5043). On other systems, and if the kernel does
// not support SCTP, the error matches [ErrUnsupported]. An address is "host:port", or
// "host/host:port" for a peer or a listener with several addresses. "sctp+udp" is SCTP in
// user space over UDP (RFC 6951), on every system. An address is "host:port", or
// "host:udpport/sctpport" if the two ports differ. The two networks interoperate if the
// kernel is configured to use UDP.
//
// Over SCTP all QPs of an RNIC with one peer share an association, each with its own pair of
// streams. TLS and Trace are not supported, and MPAOptions about frames have no effect.
//
// If the peer closes the connection without sending one octet of a Reply, as a peer does
// that supports only RFC 5044, Dial tries once more, with revision 1, on a new connection
// (RFC 6581 section 10); see MPAOptions.NoFallback. Over SCTP such a peer answers with a
// Terminate, and the second session negotiates no depths. A listener with too many waiting
// requests answers in the same way (RFC 5043 section 6.4).
//
// If the peer's application rejects the connection, the error is a *[RejectError]. If the
// process has no file descriptor left, the user no epoll watch, or the system no local port
// or memory for sockets, the error says so and matches [transport.ErrExhausted].
func (r *RNIC) Dial(ctx context.Context, network, addr string, qc *QPConfig) (*QP, error) {
	return r.connect(ctx, qc, initiation{
		info:    &AuthInfo{Network: network, Target: addr},
		network: network,
		run:     func(ctx context.Context, l *setup.Local) error { return r.setups.Dial(ctx, network, addr, l) },
		failure: func(err error) error { return setup.DialError(network, addr, err) },
	})
}

// An initiation describes how to set up a connection that this side requests.
type initiation struct {
	info    *AuthInfo
	network string // empty for an existing connection
	run     func(ctx context.Context, l *setup.Local) error
	failure func(err error) error // adds which connection failed
}

// connect creates a QP, and sets up its connection.
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

// connect sets up the connection of a QP.
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

// Client makes this side the initiator on an existing connection. From now on c belongs to the
// QP: the caller must not use it any more, not even to close it, because the QP of a TCP
// connection may have taken over its descriptor. Client cannot try again with revision 1 as
// Dial does; it then returns an error that matches ErrUnsupported. After a *[RejectError] c is
// still open and belongs to the caller (RFC 5044 section 7.1.2). After any other error it is
// closed. A nil c is an error.
//
// The library makes its own system calls only on a *net.TCPConn itself. It uses every other
// net.Conn, even a wrapper of a *net.TCPConn, through Read and Write. A wrapper should have a
// method CloseWrite, as a *net.TCPConn has, and SetLinger, or a method Abort that resets the
// connection. Without CloseWrite a graceful end may destroy messages that the peer has not
// read yet; without SetLinger or Abort the peer cannot tell an abort from a graceful end.
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

// initiator returns the QP's side of a connection that this side requests.
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

// responder returns the QP's side of a connection that the peer has requested.
func (qp *QP) responder(asked []byte) *setup.Local {
	_, _, offered := commit.CutOffer(asked)
	l := qp.local(qp.offer(offered))
	l.Establish = func(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
		return qp.establish(ctx, llp, terms, 0)
	}
	return l
}

// local returns what the sides of an initiator and of a responder have in common.
func (qp *QP) local(private []byte) *setup.Local {
	prepare := qp.cfg.Setup
	qp.cfg.Setup = nil // an unread Event, or the program, may retain the QP for long, and with it everything that Setup refers to
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

// checkRequest reports what is wrong with the Request, before anything is connected.
func (qp *QP) checkRequest(l *setup.Local, network string) error {
	err := l.CheckRequest(network)
	if own, n := len(qp.cfg.PrivateData), len(l.PrivateData); err != nil && own < n {
		err = fmt.Errorf("%w; %d of them are the offer of CommitOptions.Negotiate", err, n-own)
	}
	return err
}

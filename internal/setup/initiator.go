package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/servername"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// An initiator sets up a connection that this side requests, in one attempt or two.
type initiator struct {
	*Manager
	local       *Local
	stages      stages
	prepared    bool // Prepare was called
	tapped      bool // Trace already contains a capture
	established bool // Establish was called: errors come from it
}

// Dial connects to a listener, and returns when Establish has returned. If the peer closes the
// connection without one octet of an answer, like a peer that knows only RFC 5044, Dial tries
// once more, with revision 1, on a new connection (RFC 6581 section 10). With a Seal, Local.Again
// decides about a second attempt. If the peer's application refuses, the error is a *[RejectError].
func (m *Manager) Dial(ctx context.Context, network, addr string, l *Local) error {
	l.TLS = servername.For(l.TLS, addr)
	i := newInitiator(m, l)
	err := i.dial(ctx, network, addr, l.options())
	if err != nil && ctx.Err() == nil && i.another(ctx, err) {
		err = i.dial(ctx, network, addr, l.options())
	}
	if i.stages.begun() {
		i.fail(err)
	}
	return i.failure(transport.Exhausted(err), nil)
}

// another reports whether to make a second attempt after err. If so, the Local then describes
// that attempt.
func (i *initiator) another(ctx context.Context, err error) bool {
	l := i.local
	switch {
	case i.established, refusedByTLS(err) != nil, l.Seal != nil && l.Again == nil:
	case l.Seal != nil:
		if seal, o := l.Again(ctx, err); seal != nil {
			l.Seal, l.MPA = seal, *o
			return true
		}
	case NoAnswer(err, l.MPA) && !l.NoFallback:
		l.MPA.Revision = mpa.Revision1
		return true
	}
	return false
}

// NoAnswer reports whether err means that the peer has not answered an enhanced Request, like a peer that
// knows only revision 1. asked holds the options of that Request. A session whose depths are fixed is not
// enhanced.
func NoAnswer(err error, asked mpa.Options) bool {
	refused := errors.Is(err, sctp.ErrRefused) && !asked.FixedDepths
	return asked.Revision != mpa.Revision1 && (refused || errors.Is(err, mpa.ErrNoReply))
}

func newInitiator(m *Manager, l *Local) *initiator {
	return &initiator{Manager: m, local: l, stages: stages{trace: l.Stages}}
}

// dial makes one attempt.
func (i *initiator) dial(ctx context.Context, network, addr string, o mpa.Options) (err error) {
	defer func() { i.stages.leave(err) }()
	if IsSCTP(network) {
		return i.dialSession(ctx, network, addr)
	}
	if err := i.stages.enter(ctx, StageDial); err != nil {
		return err
	}
	var c net.Conn
	err = i.begin(ctx, func(ctx context.Context) (err error) {
		c, err = transport.Dial(ctx, network, addr, i.options())
		return err
	})
	if err != nil {
		return err
	}
	err = i.connect(ctx, c, o)
	if _, ok := errors.AsType[*RejectError](err); ok {
		_ = c.Close()
	}
	return err
}

// Client is like Dial over an existing connection, in one attempt. After a *[RejectError] c stays
// open; after any other error it is closed.
func (m *Manager) Client(ctx context.Context, c net.Conn, l *Local) error {
	if y, ok := c.(*Layer); ok {
		return y.establish(ctx, l)
	}
	i := newInitiator(m, l)
	err := m.bindPeerTimeout(c)
	if err == nil {
		err = i.connect(ctx, c, l.options())
	} else {
		_ = c.Close()
	}
	i.stages.leave(err)
	i.fail(err)
	noReply := errors.Is(err, mpa.ErrNoReply) && refusedByTLS(err) == nil
	err = i.failure(err, c)
	if noReply {
		err = errtext.Reword(errors.Join(m.cfg.Unsupported, err), err.Error())
	}
	return err
}

// failure rewords err to say plainly why there is no connection. c is nil if Dial makes it.
func (i *initiator) failure(err error, c net.Conn) error {
	if i.established {
		return err
	}
	s := lack{missing: "an MPA Reply", initiator: true, once: c != nil && errors.Is(err, mpa.ErrNoReply)}
	s.secured = i.local.TLS != nil
	o := &i.local.MPA
	asksEnhanced := o.Revision != mpa.Revision1 && (!o.ClientServer || !o.FixedDepths)
	s.begun = asksEnhanced && !errors.Is(err, mpa.ErrNoReply)
	if _, secure := c.(*tls.Conn); !secure && !s.secured {
		s.tls = "QPConfig.TLS"
	}
	return i.Manager.failure(err, s)
}

// establish hands the connection over.
func (i *initiator) establish(ctx context.Context, llp transport.LLP, terms *mpa.Terms) error {
	if err := OrUndo(llp.Abort, func() error { return i.stages.enter(ctx, StageConfirm) }); err != nil {
		return err
	}
	i.established = true
	i.logPath(llp.Path())
	return i.local.Establish(ctx, llp, terms)
}

// connect sets up the connection c from this side, and closes it unless it
// succeeds or is rejected.
func (i *initiator) connect(ctx context.Context, c net.Conn, o mpa.Options) error {
	var stream transport.Stream
	err := OrUndo(func(error) { _ = c.Close() }, func() error {
		return i.begin(ctx, func(ctx context.Context) (err error) {
			stream, err = i.open(ctx, c)
			return err
		})
	})
	if err != nil {
		return err
	}
	ctx, done, err := i.exchange(ctx, nil)
	if err != nil {
		_ = stream.Close()
		return err
	}
	defer done()
	conn, terms, err := i.negotiate(ctx, stream, o)
	if err != nil {
		return err
	}
	return i.establish(ctx, conn, terms)
}

// negotiate performs the MPA start-up, and closes stream unless it succeeds or the connection is rejected.
func (i *initiator) negotiate(ctx context.Context, stream transport.Stream, o mpa.Options) (conn *mpa.Conn, terms *mpa.Terms, err error) {
	err = OrUndo(func(err error) {
		if _, ok := errors.AsType[*RejectError](err); !ok {
			_ = stream.Close()
		}
		transport.FlushTap(stream)
	}, func() (err error) {
		if err = i.stages.enter(ctx, StageReply); err != nil {
			return err
		}
		l := i.local
		if conn, terms, err = mpa.Connect(ctx, stream, o, l.IRD, l.ORD, l.PrivateData); err != nil {
			return rejection(i.endedBy(ctx, err))
		}
		return nil
	})
	return conn, terms, err
}

// open prepares c for MPA and calls Prepare.
func (i *initiator) open(ctx context.Context, c net.Conn) (transport.Stream, error) {
	c, err := i.secure(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := i.stages.enter(ctx, StageRequest); err != nil {
		return nil, err
	}
	if err := i.prepare(ctx); err != nil {
		return nil, err
	}
	s := i.local.traced(i.stream(c), transport.TapOptions{Continues: i.tapped})
	i.tapped = true
	return s, nil
}

// prepare calls Prepare, but only once even if Dial has to try twice.
func (i *initiator) prepare(ctx context.Context) error {
	if i.prepared {
		return nil
	}
	i.prepared = true
	return i.local.prepare(ctx)
}

// secure wraps c in TLS if TLS is configured.
func (i *initiator) secure(ctx context.Context, c net.Conn) (net.Conn, error) {
	cfg := i.local.TLS
	if cfg == nil {
		return c, nil
	}
	if err := i.stages.enter(ctx, StageSecure); err != nil {
		return nil, err
	}
	c, err := transport.TLSClient(ctx, c, cfg)
	if err != nil {
		return nil, tlsError(err)
	}
	if t, ok := c.(*tls.Conn); ok && i.local.Secured != nil {
		i.local.Secured(t.ConnectionState())
	}
	return c, nil
}

// dialSession makes one attempt over SCTP.
func (i *initiator) dialSession(ctx context.Context, network, addr string) error {
	l := i.local
	if l.TLS != nil || l.Trace != nil {
		return fmt.Errorf("%w: TLS, and Trace, over SCTP", i.cfg.Unsupported)
	}
	if err := i.stages.enter(ctx, StageDial); err != nil {
		return err
	}
	var s sctp.Stream
	err := i.begin(ctx, func(ctx context.Context) (err error) {
		s, err = i.clients[network].Open(ctx, addr)
		return err
	})
	if err != nil {
		return i.kernelError(err)
	}
	err = OrUndo(func(error) { s.Release(true) }, func() error {
		return i.begin(ctx, func(ctx context.Context) error {
			if err := i.stages.enter(ctx, StageRequest); err != nil {
				return err
			}
			if err := i.prepare(ctx); err != nil {
				return err
			}
			return i.stages.enter(ctx, StageReply)
		})
	})
	if err != nil {
		return err
	}
	ctx, done, err := i.exchange(ctx, nil)
	if err != nil {
		s.Release(true)
		return err
	}
	defer done()
	conn, terms, err := sctp.Connect(ctx, s, l.session(), l.IRD, l.ORD, l.PrivateData)
	if err != nil {
		return rejection(i.endedBy(ctx, err))
	}
	t := sessionTerms(terms)
	t.Initiator = true
	return i.establish(ctx, conn, t)
}

package iwarp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
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
// connection (RFC 6581 section 10); see MPAOptions.NoFallback. A refusal of the
// peer's application is a *[RejectError]. Where the process has no file descriptor left, or
// the system no memory for sockets, the error says so and matches
// [transport.ErrExhausted].
func (r *RNIC) Dial(ctx context.Context, network, addr string, qc *QPConfig) (*QP, error) {
	qp, err := r.newQP(qc)
	if err != nil {
		return nil, err
	}
	if err = qp.checkRequest(network); err == nil {
		err = qp.dial(ctx, network, addr, qp.cfg.MPA.options())
	}
	if (errors.Is(err, mpa.ErrNoReply) || errors.Is(err, sctp.ErrRefused)) && qp.mayFallBack(ctx) {
		o := qp.cfg.MPA.options()
		o.Revision = mpa.Revision1
		err = qp.dial(ctx, network, addr, o)
	}
	if err != nil {
		qp.abandon(err)
		return nil, dialError(network, addr, r.failure(transport.Exhausted(err), qp.initiating(nil)))
	}
	return qp, nil
}

// checkRequest finds out what is wrong with the Request before anything is connected.
func (qp *QP) checkRequest(network string) error {
	n := len(qp.offer(true))
	err := qp.cfg.MPA.options().CheckRequest(n)
	if network == networkSCTP || network == networkSCTPUDP {
		err = qp.sessionOptions().CheckRequest(n)
	}
	if own := len(qp.cfg.PrivateData); err != nil && own < n {
		err = fmt.Errorf("%w; %d of them are the offer of CommitOptions.Negotiate", err, n-own)
	}
	return err
}

func (qp *QP) mayFallBack(ctx context.Context) bool {
	return !qp.cfg.MPA.NoFallback && ctx.Err() == nil
}

// dial makes one attempt.
func (qp *QP) dial(ctx context.Context, network, addr string, o mpa.Options) error {
	if network == networkSCTP || network == networkSCTPUDP {
		return qp.dialSession(ctx, network, addr, o.Revision == mpa.Revision1)
	}
	c, err := transport.Dial(ctx, network, addr, transport.Options{})
	if err != nil {
		return err
	}
	err = qp.connect(ctx, c, o)
	var rej *RejectError
	if errors.As(err, &rej) {
		_ = c.Close()
	}
	return err
}

// Client makes the initiator of an existing connection, which from now on belongs
// to the QP: the caller must not use c any more, not even to close it, for the QP of a
// TCP connection may have taken over its descriptor. Client cannot try again with
// revision 1 as Dial does: it then returns an error that matches ErrUnsupported. After a
// *[RejectError] c is still open and the caller's (RFC 5044 section 7.1.2); after any
// other error it is closed. A nil c is an error.
//
// Only a *net.TCPConn itself is driven by system calls of the library's own;
// everything else, a wrapper of one included, through its Read and Write.
func (r *RNIC) Client(ctx context.Context, c net.Conn, qc *QPConfig) (*QP, error) {
	if isNil(c) {
		return nil, errNoConn("client")
	}
	qp, err := r.newQP(qc)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	if err = qp.checkRequest(""); err == nil {
		err = qp.connect(ctx, c, qp.cfg.MPA.options())
	} else {
		_ = c.Close()
	}
	if err != nil {
		qp.abandon(err)
		noReply := errors.Is(err, mpa.ErrNoReply)
		err = r.failure(err, qp.initiating(c))
		if noReply {
			err = &reworded{err.Error() + ", or know only MPA revision 1 (MPAOptions.Revision)", errors.Join(ErrUnsupported, err)}
		}
		return nil, fmt.Errorf("iwarp: client: %w", clause{err})
	}
	return qp, nil
}

// isNil reports whether c is no connection: nil, or a nil pointer of a type that
// implements net.Conn.
func isNil(c net.Conn) bool {
	v := reflect.ValueOf(c)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func errNoConn(what string) error { return fmt.Errorf("iwarp: %s: the net.Conn is nil", what) }

// connect sets up the connection c from this side, and closes it unless it
// succeeds or is rejected.
func (qp *QP) connect(ctx context.Context, c net.Conn, o mpa.Options) error {
	r := qp.rnic
	if err := r.watch(c); err != nil {
		_ = c.Close()
		return err
	}
	defer r.unwatch(c)
	stream, err := qp.prepare(ctx, c)
	if err != nil {
		_ = c.Close()
		return err
	}
	ctx, done, err := r.exchange(ctx)
	if err != nil {
		_ = stream.Close()
		return err
	}
	defer done()
	r.unwatch(c)
	conn, terms, err := mpa.Connect(ctx, stream, o, qp.cfg.IRD, qp.cfg.ORD, qp.offer(true))
	if err != nil {
		err = setupError(endedBy(ctx, err))
		var rej *RejectError
		if !errors.As(err, &rej) {
			_ = stream.Close()
		}
		transport.FlushTap(stream)
		return err
	}
	if err := qp.establish(ctx, conn, terms, rtrOf(terms.RTR)); err != nil {
		return err
	}
	if terms.RTR != 0 {
		qp.knockAgain()
	}
	return nil
}

// prepare makes c ready for MPA and runs Setup.
func (qp *QP) prepare(ctx context.Context, c net.Conn) (transport.Stream, error) {
	c, err := qp.rnic.secure(ctx, c, qp.cfg.TLS)
	if err != nil {
		return nil, err
	}
	if err := qp.setup(ctx); err != nil {
		return nil, err
	}
	return qp.traced(qp.rnic.stream(c), transport.TapOptions{}), nil
}

// traced records what passes s if there is a Trace. A second attempt of Dial adds to
// the capture of the first.
func (qp *QP) traced(s transport.Stream, o transport.TapOptions) transport.Stream {
	if qp.cfg.Trace == nil {
		return s
	}
	o.Continues = qp.tapped
	qp.tapped = true
	return transport.Tap(s, qp.cfg.Trace, o)
}

// setup runs the user's Setup, once even if Dial has to try twice.
func (qp *QP) setup(ctx context.Context) error {
	f := qp.cfg.Setup
	if f == nil {
		return nil
	}
	qp.cfg.Setup = nil
	if err := f(ctx, qp); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	return nil
}

// endedBy is err, or that the RNIC was closed if that ended the exchange of ctx.
func endedBy(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, errRNICClosed) && errors.Is(cause, errRNICClosed) {
		return cause
	}
	return err
}

// secure wraps c, of an initiator, in TLS if there is a configuration for it.
func (r *RNIC) secure(ctx context.Context, c net.Conn, cfg *tls.Config) (net.Conn, error) {
	if err := r.bindPeerTimeout(c); err != nil {
		return nil, err
	}
	if cfg == nil {
		return c, nil
	}
	c, err := transport.TLSClient(ctx, c, cfg)
	if err != nil {
		return nil, tlsError(err)
	}
	return c, nil
}

// bindPeerTimeout has Config.PeerTimeout hold for c.
func (r *RNIC) bindPeerTimeout(c net.Conn) error {
	if d := r.cfg.PeerTimeout; d > 0 {
		return transport.SetPeerTimeout(c, d)
	}
	return nil
}

func (m MPAOptions) options() mpa.Options {
	return mpa.Options{
		Revision: m.Revision, NoCRC: m.NoCRC, Markers: m.Markers,
		EarlyResponderSend: m.EarlyResponderSend, LargePrivateData: m.LargePrivateData,
		MaxULPDU: m.MaxULPDU, RTR: m.RTR, ClientServer: m.ClientServer, FixedDepths: m.FixedDepths,
		StrictRTR: m.StrictRTR, StrictDepths: m.StrictDepths,
	}
}

package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// A Request is a connection that an initiator has requested, to be accepted or
// rejected once.
type Request struct {
	s     transport.Stream
	frame Frame
	wire  []byte // the frame as it arrived
	peer  enhanced.Data
	ulp   []byte
	seal  transport.Sealer // of the Reply; nil: none
	shut  error            // of Open
}

const doingReply = "sending the MPA Reply"

// ReadRequest reads the Request of the initiator at the other end of s. ctx bounds it.
// After an error, which wraps a *transport.Fault, and the error of ctx if ctx has ended, s is
// closed, and nothing has been sent.
func ReadRequest(ctx context.Context, s transport.Stream) (*Request, error) {
	unbound := bound(ctx, s)
	frame, wire, err := readFrame(s, ParseRequestHeader)
	if unboundErr := unbound(); err == nil {
		err = unboundErr
	}
	if err != nil {
		return nil, failed(ctx, s, "waiting for the MPA Request", err)
	}
	peer, ulp, err := split(&frame)
	if err != nil {
		return nil, failed(ctx, s, "reading the MPA Request", err)
	}
	return &Request{s: s, frame: frame, wire: wire, peer: peer, ulp: ulp}, nil
}

// Open opens the Request with seal, before anything in it is trusted: from then on PrivateData
// is the application's part, and seal wraps the Reply. After an error of seal, which Open
// returns, the Request can only be refused, with that error as the cause.
func (r *Request) Open(seal transport.Sealer) error {
	r.seal = seal
	r.ulp, r.shut = open(seal, &r.frame, r.wire)
	if r.shut != nil {
		r.ulp = nil
	}
	return r.shut
}

// PrivateData returns the private data of the initiator's ULP, without the enhanced
// data. It belongs to the caller.
func (r *Request) PrivateData() []byte { return r.ulp }

// Trace replaces the Stream that the Request arrived on by the result of wrap, for
// example a Stream that records the traffic. wrap gets that Stream and the octets of the
// Request, which it must not retain.
func (r *Request) Trace(wrap func(s transport.Stream, request []byte) transport.Stream) {
	r.s = wrap(r.s, r.wire)
}

// Revision returns the revision of the Request, 1 or 2.
func (r *Request) Revision() int { return int(r.frame.Revision) }

// PeerIRD returns how many Reads the initiator serves at a time, or -1 if it did not say.
func (r *Request) PeerIRD() int { return r.depth(r.peer.IRD) }

// PeerORD returns how many Reads the initiator wants to have outstanding, or -1 if it
// did not say.
func (r *Request) PeerORD() int { return r.depth(r.peer.ORD) }

func (r *Request) depth(d uint16) int {
	if !r.frame.Enhanced {
		return -1
	}
	return enhanced.Told(d)
}

// Accept sends a Reply with private, and returns the responder's end of the
// connection. ird and ord are the depths that this end supports and wants; a negative
// value counts as 0, but the IRD is at least 1 if nothing is negotiated. ctx bounds the sending.
//
// The returned Conn is in Full Operation, and owns the stream. Unless
// o.EarlyResponderSend is set it may not send before the first FPDU has arrived
// (see Conn.Flush). After an error in the arguments nothing has been sent; after
// any other error, which wraps a *transport.Fault, the stream is closed.
func (r *Request) Accept(ctx context.Context, o Options, ird, ord int, private []byte) (*Conn, *Terms, error) {
	revision, err := o.revision()
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkOpened(o); err != nil {
		return nil, nil, err
	}
	wrapped := enhanced.Sealing(r.seal)
	if err := o.checkPrivate(len(private), wrapped, r.frame.Enhanced); err != nil {
		return nil, nil, err
	}
	if revision < r.frame.Revision { // like an end that does not know the revision
		return nil, nil, failed(ctx, r.s, doingReply, transport.Faultf(transport.MPAStartup, "revision %d is not wanted", r.frame.Revision))
	}
	t := &Terms{
		Revision:       int(r.frame.Revision),
		CRC:            r.frame.CRC || !o.NoCRC,
		SendMarkers:    r.frame.Markers,
		ReceiveMarkers: o.Markers,
		IRD:            max(ird, 0),
		ORD:            max(ord, 0),
		PeerIRD:        r.PeerIRD(),
		PeerORD:        r.PeerORD(),

		PeerPrivateData: r.ulp,
	}
	var says enhanced.Data
	if !r.frame.Enhanced {
		// Network cards send an RTR by Read without having negotiated it (cxgb4, irdma).
		t.IRD = max(t.IRD, 1)
	} else {
		var agreed enhanced.Agreed
		says, agreed = enhanced.Respond(r.peer, enhanced.Limits{IRD: ird, ORD: ord, RTR: o.taken()})
		t.IRD, t.ORD, t.RTR = agreed.IRD, agreed.ORD, agreed.RTR
	}
	// C says that there will be a CRC, even if only the initiator wanted it: if siw
	// requires a CRC, it expects C in the Reply.
	if err := r.reply(ctx, Frame{Markers: o.Markers, CRC: t.CRC}, says, wrapped, private); err != nil {
		return nil, nil, err
	}
	c := newConn(r.s, o, t)
	c.fenced.Store(!o.EarlyResponderSend)
	return c, t, nil
}

// Reject sends a Reply that refuses the connection, with at most 248 octets of
// private data as the reason. ird and ord are the depths that this end would have
// needed, for example an ord above PeerIRD; a negative value means that the depth is not the
// reason (RFC 6581 section 9.1). The stream stays open, for the caller to close (RFC 5044
// section 7.1.2 rule 2). ctx bounds the sending.
func (r *Request) Reject(ctx context.Context, ird, ord int, private []byte) error {
	return r.refuse(ctx, transport.ErrRejected, ird, ord, private)
}

// Refuse is like Reject, for a Request that Open has not accepted. cause is the error of Open;
// the Sealer decides what the initiator learns of it.
func (r *Request) Refuse(ctx context.Context, cause error) error {
	return r.refuse(ctx, cause, -1, -1, nil)
}

func (r *Request) refuse(ctx context.Context, cause error, ird, ord int, private []byte) error {
	o, wrapped := Options{}, enhanced.Refusing(r.seal, cause)
	if err := o.checkPrivate(len(private), wrapped, r.frame.Enhanced); err != nil {
		return err
	}
	says := enhanced.Refuse(r.peer, enhanced.Limits{IRD: ird, ORD: ord, RTR: o.taken()})
	return r.reply(ctx, Frame{CRC: true, Reject: true}, says, wrapped, private)
}

// checkOpened checks that the Sealer, if there is one, has accepted the Request.
func (r *Request) checkOpened(o Options) error {
	switch {
	case r.shut != nil:
		return fmt.Errorf("mpa: the Request is not to be believed: %w", r.shut)
	case o.Seal != nil && r.seal == nil:
		return errNotOpened
	}
	return nil
}

var errNotOpened = errors.New("mpa: Options.Seal is that of an initiator: have Request.Open open the Request")

// reply sends f in the form that the Request had.
func (r *Request) reply(ctx context.Context, f Frame, says enhanced.Data, wrapped enhanced.Seal, private []byte) error {
	f.Revision, f.Enhanced = r.frame.Revision, r.frame.Enhanced
	if f.Enhanced {
		f.PrivateData = says.Append(nil)
	}
	octets, err := f.sealed(wrapped, f.AppendReply, private)
	if err != nil {
		return err
	}
	if err := r.silent(); err != nil {
		return failed(ctx, r.s, doingReply, err)
	}
	unbound := bound(ctx, r.s)
	err = write(r.s, octets)
	if unboundErr := unbound(); err == nil {
		err = unboundErr
	}
	if err != nil {
		return failed(ctx, r.s, doingReply, err)
	}
	return nil
}

// silent checks that the initiator has neither closed the connection nor sent anything
// after its Request, as far as the stream can tell without waiting.
func (r *Request) silent() error {
	n, err := r.s.Read(make([]byte, 1), transport.NoWait)
	switch {
	case n > 0:
		return transport.Faultf(transport.MPAStartup, "octets after the Request, before its Reply")
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, transport.ErrAgain), errors.Is(err, transport.ErrWoken):
		return nil
	}
	return err
}

package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// Connect establishes the initiator's end of a connection over s: it sends a Request
// with private, and waits for the Reply (RFC 5044 section 7.1.2). ird and ord are
// the depths that this end supports and wants; a negative value counts as 0. ctx bounds
// the whole exchange; its end after that has no effect.
//
// The returned Conn is in Full Operation, and owns s. If Terms.Fault is set the
// negotiation has failed: only that Terminate may still be sent.
//
// With o.Seal nothing in the Reply, not even a refusal, is trusted before Seal.Open has
// accepted it: Connect returns an error of Open, and no *RejectError.
//
// After a *RejectError s is open and not part of a connection (rule 2 there). So it is
// after an error in the arguments, when nothing has been sent. After any
// other error, which wraps a *transport.Fault, s is closed; see also ErrNoReply.
func Connect(ctx context.Context, s transport.Stream, o Options, ird, ord int, private []byte) (*Conn, *Terms, error) {
	revision, err := o.request(len(private))
	if err != nil {
		return nil, nil, err
	}
	isEnhanced := revision >= Revision2
	ours := enhanced.Limits{IRD: ird, ORD: ord, RTR: o.offered(), Untold: o.FixedDepths, Strict: o.StrictDepths}
	request := &Frame{Markers: o.Markers, CRC: !o.NoCRC, Enhanced: isEnhanced, Revision: revision}
	if isEnhanced {
		request.PrivateData = enhanced.Request(ours).Append(nil)
	}
	frame, err := request.sealed(enhanced.Sealing(o.Seal), request.AppendRequest, private)
	if err != nil {
		return nil, nil, err
	}

	unbound := bound(ctx, s)
	reply, app, err := exchange(ctx, s, request, frame, o.Seal)
	if unboundErr := unbound(); err == nil {
		err = unboundErr
	}
	if err != nil {
		return nil, nil, failed(ctx, s, "waiting for the MPA Reply", err)
	}
	d, ulp, err := split(reply)
	if err != nil {
		return nil, nil, failed(ctx, s, "reading the MPA Reply", err)
	}
	if o.Seal != nil {
		ulp = app
	}
	if reply.Reject {
		return nil, nil, rejection(reply, d, ulp)
	}
	t := initiatorTerms(request, reply, ours)
	t.PeerPrivateData = ulp
	if isEnhanced {
		t.negotiated(d)
		var agreed enhanced.Agreed
		agreed, t.Fault = enhanced.Conclude(ours, d)
		t.IRD, t.ORD, t.RTR = agreed.IRD, agreed.ORD, agreed.RTR
	}
	return newConn(s, o, t), t, nil
}

// exchange sends the octets of the Request, and reads the Reply. app is the application's private
// data in the Reply, if there is a seal.
func exchange(ctx context.Context, s transport.Stream, request *Frame, octets []byte, seal transport.Sealer) (_ *Frame, app []byte, err error) {
	err = write(s, octets)
	if errors.Is(err, io.ErrClosedPipe) { // a read shows which end was closed
		if _, readErr := s.Read(make([]byte, 1), transport.Park); readErr != nil {
			err = readErr
		}
	}
	var reply Frame
	var wire []byte
	if err == nil {
		reply, wire, err = readFrame(s, ParseReplyHeader)
	}
	if err != nil {
		if request.Enhanced && len(wire) == 0 && unanswered(ctx, err) {
			err = fmt.Errorf("%w: %w", ErrNoReply, err)
		}
		return nil, nil, err
	}
	if seal != nil {
		if app, err = open(seal, &reply, wire); err != nil {
			return nil, nil, notOpened(err)
		}
	}
	// A refusal is accepted in any form; siw refuses Markers by a Reply of another form.
	if !reply.Reject && (reply.Revision != request.Revision || reply.Enhanced != request.Enhanced) {
		return nil, nil, transport.Faultf(transport.MPAStartup,
			"a Reply of revision %d, enhanced %t, to a Request of revision %d, enhanced %t",
			reply.Revision, reply.Enhanced, request.Revision, request.Enhanced)
	}
	return &reply, app, nil
}

func rejection(reply *Frame, d enhanced.Data, ulp []byte) error {
	e := &RejectError{PrivateData: ulp, IRD: -1, ORD: -1}
	if reply.Enhanced {
		e.IRD, e.ORD = enhanced.Told(d.IRD), enhanced.Told(d.ORD)
	}
	return e
}

func initiatorTerms(request, reply *Frame, ours enhanced.Limits) *Terms {
	return &Terms{
		Initiator:      true,
		Revision:       int(reply.Revision),
		CRC:            request.CRC || reply.CRC,
		SendMarkers:    reply.Markers,
		ReceiveMarkers: request.Markers,
		IRD:            max(ours.IRD, 0),
		ORD:            max(ours.ORD, 0),
		PeerIRD:        -1,
		PeerORD:        -1,
	}
}

// negotiated records the depths that the peer sent.
func (t *Terms) negotiated(peer enhanced.Data) {
	t.PeerIRD, t.PeerORD = enhanced.Told(peer.IRD), enhanced.Told(peer.ORD)
}

package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// upper is the [ddp.Upper] of a Stream. It makes the checks of RFC 5040 section 7.2 before a
// segment is placed.
type upper struct{ s *Stream }

func checkVersion(control uint8) error {
	if control&controlVersion != versionIETF {
		return transport.Faultf(transport.RDMAPVersion, "control octet %#02x", control)
	}
	return nil
}

func (u upper) Tagged(h ddp.TaggedHeader, n int) (stag.Access, error) {
	if err := checkVersion(h.RsvdULP); err != nil {
		return 0, err
	}
	switch op := opcodeOf(h.RsvdULP); op {
	case OpWrite:
		u.arrived(op, n)
		return stag.RemoteWrite, nil
	case OpReadResponse:
		u.arrived(op, n)
		return stag.LocalWrite, u.s.matchResponse(h, n)
	default:
		return 0, transport.Faultf(transport.RDMAPOpcode, "%v in a tagged segment", op)
	}
}

// arrived counts a tagged segment if the segments of the stream arrive in order. Otherwise a segment may be checked more
// than once, and PlacedTagged counts it.
func (u upper) arrived(op Opcode, n int) {
	if u.s.config.Window == 0 {
		u.s.received(op, 0, uint64(n))
	}
}

func (u upper) Untagged(h ddp.UntaggedHeader, n int) error {
	if err := checkVersion(h.RsvdULP); err != nil {
		return err
	}
	op := opcodeOf(h.RsvdULP)
	switch {
	case op.IsSend() && h.QN == QNSend:
		return nil
	case op == OpReadRequest && h.QN == QNRequest:
		return checkSingle(h, n, ReadRequestLen)
	case op == OpTerminate && h.QN == QNTerminate:
		return checkSingle(h, n, maxTerminate)
	case op.IsImmediate() && h.QN == QNSend:
		return checkImmediate(h, n)
	case op == OpAtomicRequest && h.QN == QNRequest:
		return checkSingle(h, n, AtomicRequestLen)
	case op == OpAtomicResponse && h.QN == QNResponse:
		return checkSingle(h, n, AtomicResponseLen)
	case h.QN == QNRequest:
		if x := u.s.serving(op); x != nil {
			return checkEnd(h, n, x.MaxRequest)
		}
	case h.QN == QNResponse && u.s.isResponse(op):
		return nil
	}
	return transport.Faultf(transport.RDMAPOpcode, "%v in an untagged segment for QN %d", op, h.QN)
}

// checkSingle checks that the message is a single segment, as a control message must be.
func checkSingle(h ddp.UntaggedHeader, n, size int) error {
	if !h.Last {
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "%v of more than one segment", opcodeOf(h.RsvdULP))
	}
	if h.MO != 0 {
		return transport.Faultf(transport.DDPOffset, "%v at MO %d", opcodeOf(h.RsvdULP), h.MO)
	}
	return checkEnd(h, n, size)
}

// checkEnd checks that the message has at most size octets. A buffer of QN 1 may be larger.
func checkEnd(h ddp.UntaggedHeader, n, size int) error {
	if uint64(h.MO) > uint64(size) { // the third check of RFC 5041 section 7.1, before the fourth
		return transport.Faultf(transport.DDPOffset, "%v at MO %d of %d octets", opcodeOf(h.RsvdULP), h.MO, size)
	}
	if end := uint64(h.MO) + uint64(n); end > uint64(size) {
		return transport.Faultf(transport.DDPTooLong, "%v reaches octet %d of %d", opcodeOf(h.RsvdULP), end, size)
	}
	return nil
}

func (u upper) DeliverTagged(h ddp.TaggedHeader) error {
	if opcodeOf(h.RsvdULP) == OpReadResponse {
		return u.s.deliverResponse()
	}
	u.s.received(OpWrite, 1, 0)
	return nil
}

// A sendSink is QN 0: the receive queue.
type sendSink struct {
	ReceiveQueue
	s          *Stream
	immediates immediates
}

// Buffer returns the buffer of the k-th receive for a Send. Immediate Data takes a receive, too,
// but goes into the completion and not into the memory of the receive.
func (q *sendSink) Buffer(k int, h *ddp.UntaggedHeader) []stag.Span {
	if opcodeOf(h.RsvdULP).IsImmediate() {
		return q.immediates.reach(h.MSN, k).span[:]
	}
	return q.ReceiveQueue.Buffer(k)
}

// Deliver invalidates the STag of a Send with Invalidate before it delivers the Send, because the
// completion implies that the STag is invalid (RFC 5040 section 5.3).
func (q *sendSink) Deliver(h ddp.UntaggedHeader, n uint32) error {
	op := opcodeOf(h.RsvdULP)
	m := Received{Opcode: op, Len: n, Solicited: op.Solicited()}
	if op.Invalidates() {
		m.Invalidated, m.STag = true, stag.STag(h.RsvdULPWord)
		if err := q.s.invalidateFor(m.STag); err != nil {
			return err
		}
	}
	q.s.received(op, 1, uint64(n))
	if op.IsImmediate() {
		m.Len, m.Imm = 0, q.immediates.at(h.MSN).octets
	}
	q.ReceiveQueue.Deliver(m)
	q.s.delivered = true
	if q.s.ending() { // a message that arrived early would complete the receive of one that was not delivered
		q.s.ddp.Forget()
	}
	return nil
}

// MayBatch reports whether a message may be delivered together with others. A Send with
// Invalidate may not, because its STag must be invalid before the next segment is placed.
func (q *sendSink) MayBatch(h *ddp.UntaggedHeader) bool {
	op := opcodeOf(h.RsvdULP)
	return op.IsSend() && !op.Invalidates()
}

// DeliverBatch delivers Sends.
func (q *sendSink) DeliverBatch(h *ddp.UntaggedHeader, lens []uint32) {
	op, octets := opcodeOf(h.RsvdULP), uint64(0)
	for _, n := range lens {
		octets += uint64(n)
	}
	q.s.received(op, uint64(len(lens)), octets)
	q.DeliverSends(op, lens)
	q.s.delivered = true
}

// invalidateFor invalidates an STag at the request of the peer. An STag that is not valid is
// an operation error, and an STag that the peer may not invalidate is a protection error, as
// in Linux siw; RFC 5040 permits either.
func (s *Stream) invalidateFor(t stag.STag) error {
	switch v := s.config.Table.InvalidateSTag(s.config.Scope, t, true); v {
	case stag.None:
		return nil
	case stag.InvalidSTag:
		return transport.Faultf(transport.RDMAPOpNoInvalidate, "%v: %v", t, v)
	default:
		return transport.Faultf(transport.RDMAPProtNoInvalidate, "%v: %v", t, v)
	}
}

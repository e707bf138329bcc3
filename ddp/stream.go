package ddp

import (
	"errors"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An Upper is the layer above, RDMAP for one. Its calls come from the goroutine
// that is in [transport.LLP.Receive]. An error that is (or wraps) a
// [transport.Fault] ends the stream with that code, [transport.ErrStall] holds the
// segment back, and any other error is a local catastrophe.
//
// Tagged and Untagged should only look: a segment that was held back is asked
// about again, and a [Stream] with a Window asks in the order of arrival.
type Upper interface {
	// Tagged is asked before a tagged segment is placed. It answers with the right
	// that the buffer must grant to this stream. n is the length of the payload;
	// of a segment without payload the answer is not used, for its STag and TO mean
	// nothing (RFC 5041 section 5.2).
	Tagged(h TaggedHeader, n int) (stag.Access, error)

	// Untagged is asked before an untagged segment of a bound queue is placed.
	Untagged(h UntaggedHeader, n int) error

	// DeliverTagged tells that a tagged message is complete, and all messages
	// before it. h is the header of its last segment.
	DeliverTagged(h TaggedHeader) error

	// PlacedTagged tells of a tagged segment with n octets of payload, in the sender's
	// order: it was placed, and everything before it. It comes before DeliverTagged of the
	// same segment, and only of a [Stream] with a Window: without one that is the order in
	// which Tagged is asked.
	PlacedTagged(h TaggedHeader, n int) error

	// PredictTagged tells of the k-th tagged message from now on: the header of its next segment,
	// as if that were not the last, the right that Tagged will answer with, and how many
	// octets are to come. ok is false if that is not known, or if the peer may send
	// something else in between as well.
	PredictTagged(k int) (h TaggedHeader, access stag.Access, n uint64, ok bool)
}

// Config is what a [Stream] stands on. Table and Upper must be set.
type Config struct {
	Table *stag.Table
	Scope stag.Scope // of this stream: its PD and its own identity
	Upper Upper

	// Window is how many segments may wait for an earlier one, if the LLP passes
	// segments out of order. 0: the LLP keeps the order.
	Window int
}

// A Stream is the receiving half of one DDP stream: it checks, places and delivers
// (RFC 5041 sections 5.3, 5.4 and 7). Only the goroutine in
// [transport.LLP.Receive] may use it. It never ends the stream by itself: it
// reports, and the owner decides.
type Stream struct {
	table  *stag.Table
	scope  stag.Scope
	upper  Upper
	queues []untaggedQueue

	next  uint64 // the segment whose turn it is
	ahead window // those that came before their turn
	seg   segment
	err   *SegmentError
	open  bool // the segment before next was not the last of its message

	guarded *guard // nil: it is not

	places []place          // between Predict and Unpin
	lens   [batchMax]uint32 // of the messages of a batch
}

// New returns a Stream that awaits the first segment. Bind its queues first.
func New(c Config) *Stream {
	return &Stream{
		table:  c.Table,
		scope:  c.Scope,
		upper:  c.Upper,
		queues: make([]untaggedQueue, 0, usualQueues),
		ahead:  window{limit: uint64(max(c.Window, 0))},
	}
}

// Err returns what ended the stream, a *[SegmentError], or nil.
func (s *Stream) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// MidMessage reports whether the last segment that was taken leaves its message unfinished: the
// sender has more to send.
func (s *Stream) MidMessage() bool { return s.open }

// Segment takes one segment, the seq-th of the sender; it is that of
// [transport.Placer]. The octets are only borrowed.
//
// The first segment that fails its checks ends the stream: Segment returns a
// *[SegmentError] for it, and nil for every later one, which it drops unseen
// (RFC 5041 section 7.1). [transport.ErrStall] means that nothing was decided and
// that the same call has to be made again later. A segment that was seen before
// is dropped.
func (s *Stream) Segment(seq uint64, ulpdu []byte) error {
	if s.err != nil {
		return nil
	}
	if seq < s.next || s.ahead.holds(seq) {
		return s.drain()
	}
	if seq > s.next {
		return s.early(seq, ulpdu)
	}
	if err := s.inTurn(ulpdu); err != nil {
		return err
	}
	if s.ahead.held == 0 {
		return nil
	}
	return s.drain()
}

// inTurn takes the segment whose turn it is: everything before it was placed, and
// delivered if complete.
func (s *Stream) inTurn(ulpdu []byte) error {
	seg := &s.seg
	err := seg.parse(ulpdu)
	if err == nil {
		err = s.place(seg, true)
	}
	if err == nil {
		err = s.deliver(seg)
	}
	seg.payload = nil
	if err != nil {
		return s.refuse(ulpdu, len(ulpdu), err)
	}
	s.next++
	return nil
}

// refuse ends the stream on account of the segment of n octets that starts with
// head, unless err only asks for patience.
func (s *Stream) refuse(head []byte, n int, err error) error {
	if errors.Is(err, transport.ErrStall) {
		return transport.ErrStall
	}
	s.err = newSegmentError(head, n, err)
	s.ahead.drop()
	return s.err
}

// deliver hands up the message that ends with seg, if one does. All that was sent
// before seg has been placed and delivered (RFC 5041 section 5.4).
func (s *Stream) deliver(seg *segment) error {
	if seg.tagged && s.ahead.limit > 0 {
		if err := s.upper.PlacedTagged(seg.t, seg.n); err != nil {
			return err
		}
	}
	q := seg.q
	s.open = !seg.last()
	switch {
	case seg.tagged && !seg.last():
		return nil
	case seg.tagged:
		return s.upper.DeliverTagged(seg.t)
	case !seg.last():
		q.placed.add(seg.u.MO, seg.n)
		return nil
	}
	if err := q.Deliver(seg.u.fields(), seg.u.MO+uint32(seg.n)); err != nil {
		return err
	}
	q.due = q.due.Next()
	q.placed.reset()
	return nil
}

package ddp

import (
	"errors"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An Upper is the layer above, for example RDMAP. Its methods are called by the goroutine
// in [transport.LLP.Receive]. An error that is (or wraps) a
// [transport.Fault] ends the stream with that code, [transport.ErrStall] holds the
// segment back, and any other error is a local catastrophic error.
//
// Tagged and Untagged should have no effects: they are called again for a segment that was
// held back, and a [Stream] with a Window calls them in the order of arrival.
type Upper interface {
	// Tagged is called before a tagged segment is placed. It returns the right
	// that the buffer must grant to this stream. n is the length of the payload. For a
	// segment without payload the result is not used, because its STag and TO mean
	// nothing (RFC 5041 section 5.2).
	Tagged(h TaggedHeader, n int) (stag.Access, error)

	// Untagged is called before an untagged segment of a bound queue is placed.
	Untagged(h UntaggedHeader, n int) error

	// DeliverTagged reports that a tagged message, and all messages before it, are
	// complete. h is the header of its last segment.
	DeliverTagged(h TaggedHeader) error

	// PlacedTagged reports, in the sender's order, that a tagged segment with n octets of
	// payload, and everything before it, was placed. It is called before DeliverTagged of
	// the same segment, and only for a [Stream] with a Window: without one, Tagged is called
	// in that order.
	PlacedTagged(h TaggedHeader, n int) error

	// PredictTagged describes the k-th tagged message from now on: the header of its next segment,
	// as if that were not the last, the right that Tagged will return, and how many
	// octets will arrive. ok is false if that is not known, or if the peer may also send
	// something else in between.
	PredictTagged(k int) (h TaggedHeader, access stag.Access, n uint64, ok bool)
}

// Config configures a [Stream]. Table and Upper must be set.
type Config struct {
	Table *stag.Table
	Scope stag.Scope // of this stream: its PD and its own identity
	Upper Upper

	// Window is how many segments may wait for an earlier one, if the LLP passes
	// segments out of order. 0: the LLP preserves the order.
	Window int
}

// A Stream is the receiving half of one DDP stream: it checks, places and delivers
// (RFC 5041 sections 5.3, 5.4 and 7). Only the goroutine in
// [transport.LLP.Receive] may use it. It never ends the stream by itself: it
// returns an error, and the owner decides.
type Stream struct {
	table  *stag.Table
	scope  stag.Scope
	upper  Upper
	queues []untaggedQueue

	next  uint64 // the segment whose turn it is
	ahead window // the segments that arrived before their turn
	seg   segment
	err   *SegmentError
	open  bool // the segment before next was not the last of its message

	guarded *guard // nil: not guarded

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

// MidMessage reports whether the last segment that was processed leaves its message unfinished,
// so that the sender has more to send.
func (s *Stream) MidMessage() bool { return s.open }

// Segment implements [transport.Placer]: it processes one segment, the seq-th of the
// sender. It does not retain ulpdu.
//
// The first segment that fails its checks ends the stream: Segment returns a
// *[SegmentError] for it, and nil for every later one, which it drops unseen
// (RFC 5041 section 7.1). [transport.ErrStall] means that nothing was decided and
// that the same call must be made again later. A segment that was seen before
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

// inTurn processes the segment whose turn it is: everything before it was placed, and
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

// refuse ends the stream because of the segment of n octets that starts with head,
// unless err is ErrStall.
func (s *Stream) refuse(head []byte, n int, err error) error {
	if errors.Is(err, transport.ErrStall) {
		return transport.ErrStall
	}
	s.err = newSegmentError(head, n, err)
	s.ahead.drop()
	return s.err
}

// deliver delivers the message that ends with seg, if one does. All that was sent
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

package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// end is the state of the end of a stream.
type end struct {
	terminate terminateState
	message   *Terminate // the Terminate that was queued; nil: none

	// The request that is the reason for the end, and how it completes. All other
	// requests that are not complete are flushed.
	failed *Request
	status Status
	code   transport.Code

	over bool // End was called
}

type terminateState uint8

const (
	terminateNone terminateState = iota
	terminateQueued
	terminateFilled // it is in the batch
	terminateSent
)

// Terminate ends the stream because of an error that this side has found. From now on only
// one Terminate is sent, and all segments of the peer are dropped. The Terminate describes a
// *[ddp.SegmentError] as RFC 5040 section 4.8 requires, gives the code of a
// [transport.Fault], and for any other error says only that the stream has failed. A message
// that is partly sent is abandoned after its last segment.
//
// It reports whether there is a Terminate to send: there is none if the stream was ending
// already, or if cause is an error in a Terminate of the peer, because a Terminate is never
// answered by a Terminate.
func (s *Stream) Terminate(cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enter(phaseEnding) {
		return false
	}
	if InTerminate(cause) {
		return false
	}
	op, ok := opcodeInError(cause)
	if code := asFault(0, cause).Code; ok && op == OpReadResponse && isPlacement(code) && s.orq.len() > 0 && s.orq.at(0).Kind == KindRead {
		st := StatusLocalProtection // the response was correct, but could not be placed
		switch {
		case !s.isAnswer(cause):
			st = StatusBadResponse
		case code == transport.DDPLocalCatastrophic:
			st = StatusLocalOp
		}
		s.endFor(s.orq.at(0), st, code)
	}
	s.end.message = newTerminate(cause)
	s.end.terminate = terminateQueued
	return true
}

// isAnswer reports whether the segment in error lies in the sink of a Read. Preconditions: s.mu is held.
func (s *Stream) isAnswer(cause error) bool {
	var e *ddp.SegmentError
	if !errors.As(cause, &e) {
		return false
	}
	h, err := ddp.ParseTagged(e.Header)
	return err == nil && s.matchAny(h, e.Len-ddp.TaggedLen) == nil
}

// isPlacement reports whether code, the error of a tagged segment, concerns the destination of
// the segment, and not the segment itself.
func isPlacement(code transport.Code) bool {
	switch code {
	case transport.DDPLocalCatastrophic, transport.DDPInvalidSTag, transport.DDPBounds,
		transport.DDPNotAssociated, transport.DDPWrap:
		return true
	}
	return false
}

// InTerminate reports whether cause is an error in a Terminate of the peer. Such an error ends the
// stream, but is not answered by a Terminate.
func InTerminate(cause error) bool {
	op, ok := opcodeInError(cause)
	return ok && op == OpTerminate
}

// opcodeInError returns the opcode of the segment that has caused the error.
func opcodeInError(cause error) (op Opcode, ok bool) {
	if e, ok := errors.AsType[*ddp.SegmentError](cause); ok && len(e.Header) > 1 {
		return opcodeOf(e.Header[1]), true
	}
	return 0, false
}

// newTerminate returns a Terminate that describes cause as RFC 5040 figure 10 requires. It
// includes the RDMA header only for protection errors of Read Requests (section 4.8).
func newTerminate(cause error) *Terminate {
	t := &Terminate{Code: asFault(transport.RDMAPStreamCatastrophic, cause).Code, SegmentLen: -1}
	var segment *ddp.SegmentError
	if !errors.As(cause, &segment) || segment.Header == nil || !t.describesSegment() {
		return t
	}
	t.DDPHeader, t.SegmentLen = segment.Header, segment.Len
	if read, ok := errors.AsType[*readError](cause); ok {
		t.RDMAHeader = read.request.Append(nil)
	}
	return t
}

// describesSegment reports whether a Terminate with t.Code includes the DDP header.
func (t Terminate) describesSegment() bool {
	switch t.Code.Layer() {
	case transport.LayerRDMAP:
		return t.Code.Type() != transport.RDMAPLocalCatastrophic.Type()
	case transport.LayerDDP:
		return true
	default:
		return false
	}
}

// TerminateSent returns the Terminate of this side, and whether it was sent.
func (s *Stream) TerminateSent() (t Terminate, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.terminate != terminateSent {
		return Terminate{}, false
	}
	return *s.end.message, true
}

// fillTerminate is Fill for a stream that is ending.
func (s *Stream) fillTerminate(llp transport.LLP) (more bool, err error) {
	f := &s.fill
	if f.now != sendingTerminate {
		t, ok := s.queuedTerminate()
		if !ok {
			f.now = sendingNothing
			return false, nil
		}
		f.wire = t.Append(f.wire[:0])
		f.source[0] = stag.Span{Mem: f.wire, Len: len(f.wire)}
		f.out = ddp.Message{
			RsvdULP: OpTerminate.control(), QN: QNTerminate, MSN: f.sender.NextMSN(QNTerminate),
			Source: f.source[:1], Stage: true,
		}
		f.now = sendingTerminate
	}
	done, err := f.sender.Emit(llp, &f.out)
	if err != nil || !done {
		return err == nil, err
	}
	f.now = sendingNothing
	s.stats.out[OpTerminate].message(uint64(len(f.wire)))

	s.mu.Lock()
	defer s.mu.Unlock()
	s.end.terminate = terminateFilled
	return false, nil
}

func (s *Stream) queuedTerminate() (t *Terminate, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end.message, s.end.terminate == terminateQueued
}

// End completes all outstanding requests, in order: the request that is the reason for the
// end with its status, all others with StatusFlushed. The poster may then reuse the memory
// of the requests. End must be called when the batch was sent or dropped, and no goroutine
// sends or receives any more: a segment that was being placed would change that memory after the
// completion. A Terminate that was not filled is not sent. A second call does nothing.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(phaseEnding)
	if s.end.over {
		return
	}
	s.end.over = true
	s.completeInOrder(false)
	if s.end.terminate == terminateQueued {
		s.end.terminate = terminateNone
	}
	for s.sq.head < s.sq.posted {
		r := s.sq.at(s.sq.head)
		st, code := StatusFlushed, transport.Code(0)
		if r == s.end.failed {
			st, code = s.end.status, s.end.code
		}
		s.complete(r, st, code)
	}
	s.completed()
	s.sq.filled, s.sq.flush, s.fill.next = s.sq.head, s.sq.head, s.sq.head
	s.orq, s.irq, s.replies, s.called = fifo[*Request]{}, fifo[*Inbound]{}, 0, 0
	s.unfinished = sendingNothing
	s.answerable.Store(false)
}

// endFor makes r the request that is the reason for the end, unless there is one already.
// Preconditions: s.mu is held.
func (s *Stream) endFor(r *Request, st Status, code transport.Code) {
	if s.end.failed == nil {
		s.end.failed, s.end.status, s.end.code = r, st, code
	}
}

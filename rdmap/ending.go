package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// end is how a stream ends.
type end struct {
	terminate terminateState
	message   Terminate // that was queued

	// The one request because of which the stream ends, and how it completes. All others
	// that are not complete are flushed.
	failed *Request
	status Status
	code   transport.Code

	over bool // End was called
}

type terminateState uint8

const (
	terminateNone terminateState = iota
	terminateQueued
	terminateFilled // in the batch
	terminateSent
)

// Terminate ends the stream for cause, found on this side: from now on nothing is sent
// but one Terminate, and nothing is taken from the peer. The Terminate tells of a
// *[ddp.SegmentError] what RFC 5040 section 4.8 asks for, of a [transport.Fault]
// the code, and of other causes no more than that this stream has failed. A message
// that is half sent is left at the end of its last segment.
//
// It reports whether there is a Terminate to send: not if the stream was ending
// already, and not if cause is a Terminate of the peer that is in error itself, for
// no Terminate is answered by one.
func (s *Stream) Terminate(cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enter(phaseEnding) {
		return false
	}
	op, ok := opcodeInError(cause)
	if ok && op == OpTerminate {
		return false
	}
	if code := asFault(0, cause).Code; ok && op == OpReadResponse && isPlacement(code) && s.orq.len() > 0 {
		// The response was right, but could not be placed.
		s.endFor(s.orq.at(0), StatusLocalProtection, code)
	}
	s.end.message = newTerminate(cause)
	s.end.terminate = terminateQueued
	return true
}

// isPlacement reports whether code, of a tagged segment, is about where it was to go,
// and not about the segment.
func isPlacement(code transport.Code) bool {
	switch code {
	case transport.DDPLocalCatastrophic, transport.DDPInvalidSTag, transport.DDPBounds,
		transport.DDPNotAssociated, transport.DDPWrap:
		return true
	}
	return false
}

// opcodeInError returns the opcode of the segment that cause is about.
func opcodeInError(cause error) (op Opcode, ok bool) {
	var e *ddp.SegmentError
	if errors.As(cause, &e) && len(e.Header) > 1 {
		return opcodeOf(e.Header[1]), true
	}
	return 0, false
}

// newTerminate says what figure 10 of RFC 5040 wants said about cause. The RDMA
// header goes with protection errors of Read Requests only, as section 4.8 has it.
func newTerminate(cause error) Terminate {
	t := Terminate{Code: asFault(transport.RDMAPStreamCatastrophic, cause).Code, SegmentLen: -1}
	var segment *ddp.SegmentError
	if !errors.As(cause, &segment) || segment.Header == nil || !t.describesSegment() {
		return t
	}
	t.DDPHeader, t.SegmentLen = segment.Header, segment.Len
	var read *readError
	if errors.As(cause, &read) {
		t.RDMAHeader = read.request.Append(nil)
	}
	return t
}

// describesSegment reports whether the DDP header is told for t.Code.
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

// TerminateSent returns the Terminate of this side once it is out.
func (s *Stream) TerminateSent() (t Terminate, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.terminate != terminateSent {
		return Terminate{}, false
	}
	return s.end.message, true
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
			Source: f.source[:], Stage: true,
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

func (s *Stream) queuedTerminate() (t Terminate, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end.message, s.end.terminate == terminateQueued
}

// End completes every request that has not completed, in order: the one that the
// stream ends on account of with what is known about it, all others with
// StatusFlushed. The memory that they name is the poster's again. It must be called
// when nothing of the stream is in flight any more: its batch is out or dropped, and
// Fill is not running; Segment may be. A Terminate that was not filled is not sent.
// Calling it again does nothing.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(phaseEnding)
	if s.end.over {
		return
	}
	s.end.over = true
	s.completeInOrder()
	if s.end.terminate == terminateQueued {
		s.end.terminate = terminateNone
	}
	for s.sq.head < s.sq.posted {
		r := s.sq.at(s.sq.head)
		st, code := StatusFlushed, transport.Code(0)
		if r == s.end.failed {
			st, code = s.end.status, s.end.code
			s.end.failed = nil
		}
		s.complete(r, st, code)
	}
	s.completed()
	s.sq.filled, s.sq.flush, s.fill.next = s.sq.head, s.sq.head, s.sq.head
	s.orq, s.irq, s.replies, s.called = fifo[*Request]{}, fifo[*Inbound]{}, 0, 0
	s.unfinished = sendingNothing
	s.answerable.Store(false)
}

// endFor makes r the request because of which the stream ends, unless there is one already.
// Preconditions: s.mu is held.
func (s *Stream) endFor(r *Request, st Status, code transport.Code) {
	if s.end.failed == nil {
		s.end.failed, s.end.status, s.end.code = r, st, code
	}
}

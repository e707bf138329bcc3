package rdmap

import (
	"errors"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// mustWait reports whether r may have to wait, which startable decides under the lock.
func (r *Request) mustWait() bool {
	return r.awaitsResponse() || r.Flags&(ReadFence|LocalFence) != 0
}

// startable reports whether r, the i-th request, may start; all earlier requests have. With an
// ORD of 0 a Read may start, so that it fails.
func (s *Stream) startable(r *Request, i uint64) bool {
	switch {
	case r.Flags&LocalFence != 0 && s.sq.head != i:
		return false
	case r.Flags&ReadFence != 0 && s.orq.len() > 0:
		return false
	case r.awaitsResponse() && s.config.ORD > 0:
		return s.orq.len() < s.config.ORD && s.admits(r, false)
	}
	return true
}

// openRequest makes r the current message.
func (s *Stream) openRequest(r *Request) error {
	f := &s.fill
	f.now, f.req = sendingRequest, r
	if r.takesReceive() { // before publish: another goroutine may look for the number while r is unfinished
		r.msn = f.sender.NextMSN(QNSend)
	}
	op := r.opcode()
	switch r.Kind {
	case KindRead, KindAtomic, KindExtension:
		return s.openAwaiting(r, op)
	case KindImmediate:
		s.openImmediate(r)
		return nil
	case KindWrite:
		f.out = ddp.Message{Tagged: true, STag: r.Remote.STag, TO: r.Remote.TO}
	default:
		f.out = ddp.Message{QN: QNSend, MSN: r.msn}
		if op.Invalidates() {
			f.out.RsvdULPWord = uint32(r.Invalidate)
		}
	}
	f.out.RsvdULP = op.control()
	f.out.Source = r.Spans
	if !r.usable() {
		return s.failRequest(r, StatusLocalProtection, stag.ErrInvalid)
	}
	return nil
}

// openImmediate makes the Immediate Data of r the current message.
func (s *Stream) openImmediate(r *Request) {
	f := &s.fill
	f.wire = append(f.wire[:0], r.Imm[:]...)
	f.source[0] = stag.Span{Mem: f.wire, Len: len(f.wire)}
	f.out = ddp.Message{
		RsvdULP: r.immediateOpcode().control(), QN: QNSend, MSN: r.msn, Source: f.source[:1], Stage: true,
	}
}

// openAwaiting makes r, which has a response, the current message. Its octets are staged: the
// response may arrive, and the request may be reused, before Flushed is called.
func (s *Stream) openAwaiting(r *Request, op Opcode) error {
	f := &s.fill
	if s.config.ORD == 0 {
		return s.failRequest(r, StatusLocalOp, ErrNoReads)
	}
	f.out = ddp.Message{RsvdULP: op.control(), QN: QNRequest, Stage: true, Source: r.Spans}
	if r.Kind == KindRead {
		if err := s.openRead(r); err != nil {
			return err
		}
	}
	f.out.MSN = f.sender.NextMSN(QNRequest)
	if r.Kind == KindAtomic {
		identify(r.Inline, f.out.MSN)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	r.msn = f.out.MSN
	s.orq.push(r)
	if r.awaitsReply() {
		s.replies++
		if r.reply == nil {
			r.reply = new(replyBuffer)
		}
	}
	return nil
}

func (s *Stream) openRead(r *Request) error {
	f := &s.fill
	if !f.askFor(r) {
		return s.failRequest(r, StatusLocalProtection, stag.ErrInvalid)
	}
	f.out.Source = f.source[:1]
	return nil
}

// takeSink sets the sink of the Read r, if r is not empty. It reports false if the sink is not
// valid.
func (r *Request) takeSink() bool {
	if len(r.Spans) == 0 || r.Spans[0].Region == nil {
		return true
	}
	x := r.Spans[0].Region
	if !x.Usable() {
		return false
	}
	r.sink = RemoteAddr{STag: x.STag(), TO: x.BaseTO() + r.Spans[0].Off}
	return true
}

// failRequest records that r is the reason for the end of the stream. The Terminate says only
// that the error is local (RFC 5040 section 7.1 (1)).
func (s *Stream) failRequest(r *Request, st Status, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endFor(r, st, transport.RDMAPLocalCatastrophic)
	return asFault(transport.RDMAPLocalCatastrophic, err)
}

// answered records that the response to the oldest request of the orq is complete. The request
// completes in BatchDone. Preconditions: there is one, and s.mu is held.
func (s *Stream) answered() {
	r := s.orq.pop()
	if r.awaitsReply() {
		s.replies--
	}
	r.done = true
	s.answers = true
}

// completeInOrder completes the oldest requests that are done, up to the one that is the reason
// for the end of the stream. inBatchDone becomes the Answered of Reads. Preconditions: s.mu is held.
func (s *Stream) completeInOrder(inBatchDone bool) {
	first := s.sq.head
	for s.sq.head < s.sq.filled {
		r := s.sq.at(s.sq.head)
		if !s.isDone(r) || r == s.end.failed {
			break
		}
		if r.admission == Go {
			r.Answered = inBatchDone
		}
		s.complete(r, r.status(), 0)
	}
	if s.sq.head != first {
		s.completed()
	}
}

// isDone reports whether r, the oldest request, may complete: its response was received, or it
// was sent and has no response.
func (s *Stream) isDone(r *Request) bool {
	return r.done || s.sq.head < s.sq.flush && !r.awaitsResponse()
}

// completed must be called after a series of calls of complete.
func (s *Stream) completed() {
	s.released.flush()
	s.config.Events.Completed()
}

// complete completes r, the oldest request. Preconditions: s.mu is held.
func (s *Stream) complete(r *Request, st Status, code transport.Code) {
	r.release(&s.released)
	if !r.quiet {
		s.config.Events.Complete(r, st, code)
	}
	if r.Kind == KindSend {
		r.resetSend()
	} else {
		r.reset()
	}
	s.sq.giveBack(r)
}

// asFault returns the Fault in err, or else a Fault with the given code.
func asFault(code transport.Code, err error) *transport.Fault {
	if f, ok := errors.AsType[*transport.Fault](err); ok {
		return f
	}
	return &transport.Fault{Code: code, Err: err}
}

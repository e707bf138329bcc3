package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An Extension adds one pair of messages to a stream: a request on QN 1, which occupies a
// slot of the requester's ORD and of the responder's IRD, as an RDMA Read does, and its
// response on QN 3. Responses of all kinds are sent in the order of their requests
// (RFC 7306 section 5.2.2).
type Extension struct {
	// Request and Response are opcodes that no RFC and no other Extension of the stream uses. This
	// is not checked; the opcodes of this package take precedence.
	Request, Response       Opcode
	MaxRequest, MaxResponse int // octets; a longer message ends the stream

	// Serve is called when a request was delivered and all earlier Atomic Requests were
	// performed. The calls are made in order, one at a time, with no lock held, from the
	// receiving or the sending goroutine. Serve must not block. It must answer with
	// in.Reply or in.Fail, at once or later, from any goroutine. If Serve is nil,
	// requests of the peer are refused as an unexpected opcode.
	Serve func(in *Inbound)

	// Accept checks a response, r.Reply, before r completes. The lock of the Stream is
	// held: Accept must not call the Stream. An error, which should be a
	// [transport.Fault], ends the stream. If Accept is nil, all responses are accepted.
	Accept func(r *Request) error
}

// serving returns the extension that serves requests with opcode op, or nil.
func (s *Stream) serving(op Opcode) *Extension {
	for _, x := range s.config.Extensions {
		if x.Request == op && x.Serve != nil {
			return x
		}
	}
	return nil
}

// serveNext calls Serve for the requests that are ready to be served.
func (s *Stream) serveNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calling {
		return // the calling goroutine checks again after each call
	}
	s.calling = true
	for in := s.nextToServe(); in != nil; in = s.nextToServe() {
		in.state = inboundOpen
		s.mu.Unlock()
		in.ext.Serve(in)
		s.mu.Lock()
	}
	s.calling = false
}

// nextToServe returns the oldest request that was not given to its extension, unless an
// atomic operation precedes it. Preconditions: s.mu is held.
func (s *Stream) nextToServe() *Inbound {
	for ; s.called < s.irq.len(); s.called++ {
		in := s.irq.at(s.called)
		if in.isAtomic() {
			return nil
		}
		if in.state == inboundWaiting {
			return in
		}
	}
	return nil
}

// isResponse reports whether op is the response of an extension.
func (s *Stream) isResponse(op Opcode) bool {
	for _, x := range s.config.Extensions {
		if x.Response == op {
			return true
		}
	}
	return false
}

// Payload returns the octets of the request. They must not be used after the request was
// answered.
func (in *Inbound) Payload() []byte { return in.request[0].Mem[:in.n] }

// Reply answers the request with a copy of p. Each request must be answered exactly once, by
// Reply or Fail; in must not be used after that. Reply does nothing on a stream that is
// ending.
func (in *Inbound) Reply(p []byte) {
	var fault *transport.Fault
	if len(p) > in.ext.MaxResponse {
		fault = transport.Faultf(transport.RDMAPStreamCatastrophic,
			"response of %d octets, the maximum is %d", len(p), in.ext.MaxResponse)
	}
	in.answer(p, fault)
}

// Fail ends the stream with f, as an error of the request: at once, if Serve was called from the receiving
// goroutine and has not returned, and otherwise when earlier requests were answered.
func (in *Inbound) Fail(f *transport.Fault) { in.answer(nil, f) }

func (in *Inbound) answer(p []byte, f *transport.Fault) {
	s := in.s // in may be used for another request after settle
	if s.settle(in, p, f) {
		s.config.Events.Kick()
	}
}

// settle records the answer, and reports whether it can be sent now.
func (s *Stream) settle(in *Inbound, p []byte, f *transport.Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.state != inboundOpen {
		return false
	}
	in.response = append(in.response[:0], p...)
	in.fault = f
	in.state = inboundAnswered
	s.lookAtAnswers()
	return s.answerable.Load() && !s.ending()
}

// A responseSink is QN 3: Atomic Responses, and the responses to the requests of
// extensions. Its buffers are those of the outstanding requests.
type responseSink struct {
	ddp.NoBatch
	s *Stream
}

func (q *responseSink) Posted() int {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	return q.s.replies
}

func (q *responseSink) Buffer(k int, _ *ddp.UntaggedHeader) []stag.Span {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	for i := 0; ; i++ {
		r := q.s.orq.at(i)
		if !r.awaitsReply() {
			continue
		}
		if k == 0 {
			return r.reply.room(r.maxReply())
		}
		k--
	}
}

func (q *responseSink) Missing() error {
	return transport.Faultf(transport.RDMAPStreamCatastrophic, "response, but no request is outstanding")
}

func (q *responseSink) Deliver(h ddp.UntaggedHeader, n uint32) error {
	op := opcodeOf(h.RsvdULP)
	q.s.received(op, 1, uint64(n))
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	r, err := q.s.answeredBy(op)
	if err != nil {
		return err
	}
	if err := r.accept(r.reply.mem[:n]); err != nil {
		fault := asFault(transport.RDMAPStreamCatastrophic, err)
		q.s.endFor(r, StatusBadResponse, fault.Code)
		return fault
	}
	q.s.answered()
	return nil
}

// answeredBy returns the request that op answers: the oldest one of all.
func (s *Stream) answeredBy(op Opcode) (*Request, error) {
	if s.orq.len() > 0 {
		if r := s.orq.at(0); r.awaitsReply() && r.response() == op {
			return r, nil
		}
	}
	return nil, transport.Faultf(transport.RDMAPOpcode, "%v out of turn", op)
}

// response returns the opcode of the response on QN 3 that r awaits.
func (r *Request) response() Opcode {
	if r.Kind == KindAtomic {
		return OpAtomicResponse
	}
	return r.Ext.Response
}

// accept processes the response on QN 3.
func (r *Request) accept(reply []byte) error {
	if r.Kind == KindAtomic {
		return r.acceptAtomic(reply)
	}
	r.Reply = reply
	if r.Ext.Accept == nil {
		return nil
	}
	return r.Ext.Accept(r)
}

package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An Inbound is one request of the peer: the buffer that it came in, and what is to
// be answered. An [Extension] sees its own ones.
type Inbound struct {
	s        *Stream
	head     ddp.UntaggedHeader // of the last segment
	request  [1]stag.Span       // the buffer
	n        int                // octets of the request
	ext      *Extension         // nil: a Read or Atomic Request
	read     ReadRequest
	state    inboundState
	response []byte
	fault    *transport.Fault // instead of a response
}

func (in *Inbound) isAtomic() bool { return opcodeOf(in.head.RsvdULP) == OpAtomicRequest }

type inboundState uint8

const (
	inboundIdle     inboundState = iota // awaits a request
	inboundWaiting                      // its extension will get it
	inboundOpen                         // the extension has it
	inboundAnswered                     // the response can be sent, or the fault reported
)

// A requestSink is QN 1: as many buffers as the peer may have requests outstanding
// (RFC 5040 section 5.2.2). A buffer is taken until the response is in the LLP's
// batch, for from then on the peer may know that it is free again.
type requestSink struct {
	ddp.NoBatch
	s    *Stream
	size int // octets of a buffer
}

func requestLen(extensions []*Extension) int {
	n := AtomicRequestLen // the longest but for those of extensions
	for _, x := range extensions {
		n = max(n, x.MaxRequest)
	}
	return n
}

func (q requestSink) Posted() int {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	return q.s.config.IRD - q.s.irq.len()
}

// Buffer makes the buffer if it is used for the first time.
func (q requestSink) Buffer(k int, _ *ddp.UntaggedHeader) []stag.Span {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	for q.s.spare.len() <= k {
		in := &Inbound{s: q.s}
		in.request[0] = stag.Span{Mem: make([]byte, q.size), Len: q.size}
		q.s.spare.push(in)
	}
	return q.s.spare.at(k).request[:]
}

// Missing: the peer exceeds the IRD.
func (q requestSink) Missing() error {
	return transport.Faultf(transport.DDPMSNRange, "more than %d requests outstanding", q.s.config.IRD)
}

// Deliver takes a request in its turn: everything that the peer sent before has been
// placed and delivered (RFC 5040 section 5.5 rule 12).
func (q requestSink) Deliver(h ddp.UntaggedHeader, n uint32) error {
	op := opcodeOf(h.RsvdULP)
	q.s.received(op, 1, uint64(n))
	in := q.s.take(h, int(n))
	switch op {
	case OpReadRequest:
		return q.s.acceptRead(in)
	case OpAtomicRequest:
		return q.s.acceptAtomic(in)
	default: // of an extension
	}
	in.ext, in.state = q.s.serving(op), inboundWaiting
	q.s.enqueue(in)
	q.s.serveNext()
	return nil
}

// take takes the first buffer, which has n octets.
func (s *Stream) take(h ddp.UntaggedHeader, n int) *Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.spare.pop()
	*in = Inbound{s: s, request: in.request, response: in.response[:0], head: h, n: n}
	return in
}

func (s *Stream) enqueue(in *Inbound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.irq.push(in)
	s.lookAtAnswers()
}

// lookAtAnswers must follow every change of the irq and its states. Preconditions:
// s.mu is held.
func (s *Stream) lookAtAnswers() {
	s.answerable.Store(s.irq.len() > 0 && s.irq.at(0).state == inboundAnswered)
}

// acceptRead checks a Read Request and queues its response.
func (s *Stream) acceptRead(in *Inbound) (err error) {
	if in.read, err = ParseReadRequest(in.Payload()); err != nil {
		return err
	}
	if in.read.Size > 0 { // of an empty Read the source means nothing (section 5.2.1)
		r, _, fault := s.source(in.read)
		if fault != nil {
			return fault
		}
		r.Unpin()
	}
	in.state = inboundAnswered
	s.enqueue(in)
	return nil
}

// source finds and pins what a Read Request, or the rest of one, asks for.
func (s *Stream) source(h ReadRequest) (r *stag.Region, off uint64, fault *transport.Fault) {
	r, off, v := s.config.Table.Pin(s.config.Scope, h.Src.STag, stag.RemoteRead, h.Src.TO, int(h.Size))
	if v != stag.None {
		return nil, 0, &transport.Fault{Code: ProtectionCode(v), Err: &readError{h, v}}
	}
	return r, off, nil
}

// ProtectionCode is what the peer is told whose request was refused (RFC 5040 section
// 4.8).
func ProtectionCode(v stag.Violation) transport.Code {
	switch v {
	case stag.InvalidSTag:
		return transport.RDMAPInvalidSTag
	case stag.NotAssociated:
		return transport.RDMAPNotAssociated
	case stag.AccessDenied:
		return transport.RDMAPAccess
	case stag.Wrap:
		return transport.RDMAPWrap
	case stag.Bounds:
		return transport.RDMAPBounds
	default:
		return transport.RDMAPProtUnspecified
	}
}

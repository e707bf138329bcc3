package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An Inbound is a request of the peer: the buffer in which it was placed, and its response.
// An [Extension] receives its own requests only.
type Inbound struct {
	s        *Stream
	head     ddp.UntaggedHeader // of the last segment
	request  [1]stag.Span       // the buffer
	n        int                // length of the request
	ext      *Extension         // nil: a Read Request or Atomic Request
	read     ReadRequest
	state    inboundState
	response []byte
	fault    *transport.Fault // instead of a response
}

func (in *Inbound) isAtomic() bool { return opcodeOf(in.head.RsvdULP) == OpAtomicRequest }

type inboundState uint8

const (
	inboundIdle     inboundState = iota // the buffer is free
	inboundWaiting                      // the request was not given to its extension yet
	inboundOpen                         // the extension is processing the request
	inboundAnswered                     // the response can be sent, or the fault reported
)

// A requestSink is QN 1. It has as many buffers as the peer may have requests outstanding
// (RFC 5040 section 5.2.2). A buffer is occupied until the response is in the LLP's batch,
// because from then on the peer may use it again.
type requestSink struct {
	ddp.NoBatch
	s    *Stream
	size int // of a buffer
}

func requestLen(extensions []*Extension) int {
	n := AtomicRequestLen // the longest request except those of extensions
	for _, x := range extensions {
		n = max(n, x.MaxRequest)
	}
	return n
}

func (q *requestSink) Posted() int {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	return q.s.config.IRD - q.s.irq.len()
}

// Buffer returns the k-th free buffer, which it allocates on first use.
func (q *requestSink) Buffer(k int, _ *ddp.UntaggedHeader) []stag.Span {
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
func (q *requestSink) Missing() error {
	return transport.Faultf(transport.DDPMSNRange, "more than %d requests outstanding", q.s.config.IRD)
}

// Deliver processes a request. All earlier messages of the peer have been placed and
// delivered (RFC 5040 section 5.5 rule 12).
func (q *requestSink) Deliver(h ddp.UntaggedHeader, n uint32) error {
	op := opcodeOf(h.RsvdULP)
	q.s.received(op, 1, uint64(n))
	q.s.publishDelivered()
	in := q.s.take(h, int(n))
	switch op {
	case OpReadRequest:
		return q.s.acceptRead(in)
	case OpAtomicRequest:
		return q.s.acceptAtomic(in)
	default: // the request of an extension
	}
	in.ext, in.state = q.s.serving(op), inboundWaiting
	q.s.enqueue(in)
	q.s.serveNext()
	return q.s.failed(in)
}

// failed returns the fault of a request that its extension has already failed, in the call of Serve. Like the fault of a
// Read Request it is reported at once: the first message in error must be reported, and nothing that the peer has sent
// after it is placed or delivered (RFC 5040 section 7.1, RFC 7306 section 8.1).
func (s *Stream) failed(in *Inbound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.state != inboundAnswered || in.fault == nil {
		return nil // it is being served, or was answered and its buffer may be free
	}
	return in.fault
}

// publishDelivered calls Publish if a message was delivered since the last call.
func (s *Stream) publishDelivered() {
	if s.delivered && s.config.Publish != nil {
		s.config.Publish()
	}
	s.delivered = false
}

// take removes the first free buffer, which holds a request of n octets.
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

// lookAtAnswers updates answerable. It must be called after each change of the irq or of the
// state of its requests. Preconditions: s.mu is held.
func (s *Stream) lookAtAnswers() {
	s.answerable.Store(s.irq.len() > 0 && s.irq.at(0).state == inboundAnswered)
}

// acceptRead checks a Read Request and queues its response.
func (s *Stream) acceptRead(in *Inbound) (err error) {
	if in.read, err = ParseReadRequest(in.Payload()); err != nil {
		return err
	}
	if in.read.Size > 0 { // the source of an empty Read is not checked (section 5.2.1)
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

// source finds and pins the region that a Read Request, or the rest of one, reads from.
func (s *Stream) source(h ReadRequest) (r *stag.Region, off uint64, fault *transport.Fault) {
	r, off, v := s.config.Table.PinLong(s.config.Scope, h.Src.STag, stag.RemoteRead, h.Src.TO, uint64(h.Size))
	if v != stag.None {
		return nil, 0, &transport.Fault{Code: ProtectionCode(v), Err: &readError{h, v}}
	}
	return r, off, nil
}

// ProtectionCode returns the code of a Terminate for a request that was refused because of v
// (RFC 5040 section 4.8).
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

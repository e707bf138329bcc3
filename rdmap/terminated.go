package rdmap

import (
	"bytes"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A terminateSink is QN 2. Its one buffer, for the Terminate of the peer, is always available
// (RFC 5040 section 5.4).
type terminateSink struct {
	ddp.NoBatch
	s      *Stream
	buffer [1]stag.Span
	octets [maxTerminate]byte
}

func (q *terminateSink) init(s *Stream) {
	q.s = s
	q.buffer[0] = stag.Span{Mem: q.octets[:], Len: maxTerminate}
}

func (q *terminateSink) Posted() int                                 { return 1 }
func (q *terminateSink) Buffer(int, *ddp.UntaggedHeader) []stag.Span { return q.buffer[:] }
func (q *terminateSink) Missing() error                              { return nil }

func (q *terminateSink) Deliver(h ddp.UntaggedHeader, n uint32) error {
	t, err := ParseTerminate(q.buffer[0].Mem[:n])
	if err != nil {
		return err
	}
	t.DDPHeader, t.RDMAHeader = bytes.Clone(t.DDPHeader), bytes.Clone(t.RDMAHeader)
	if q.s.terminated(t, n) {
		q.s.ddp.Forget()
		q.s.config.Events.Terminated(t)
	}
	return nil
}

// terminated ends the stream because of a Terminate of the peer. It reports false if the stream
// was ending already.
func (s *Stream) terminated(t Terminate, n uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enter(phaseEnding) {
		return false
	}
	s.stats.in[OpTerminate].message(uint64(n))
	if r := s.namedBy(t); r != nil {
		s.endFor(r, remoteStatus(t.Code), t.Code)
	}
	return true
}

// namedBy returns the request that t refers to: the one with the MSN of the terminated header, or
// nil if that header is tagged or absent.
func (s *Stream) namedBy(t Terminate) *Request {
	if t.DDPHeader == nil || ddp.IsTagged(t.DDPHeader) {
		return nil
	}
	h, err := ddp.ParseUntagged(t.DDPHeader)
	if err != nil {
		return nil
	}
	switch h.QN {
	case QNRequest:
		return s.awaiting(h.MSN)
	case QNSend:
		return s.sent(h.MSN)
	}
	return nil
}

func (s *Stream) awaiting(msn ddp.MSN) *Request {
	for k := range s.orq.len() {
		if r := s.orq.at(k); r.msn == msn {
			return r
		}
	}
	return nil
}

// sent returns the Send or Immediate Data with the number msn, if it was sent, at least partly,
// and has not completed.
func (s *Stream) sent(msn ddp.MSN) *Request {
	end := s.sq.filled
	if s.unfinished == sendingRequest {
		end++
	}
	for i := s.sq.head; i < end; i++ {
		if r := s.sq.at(i); r.takesReceive() && r.msn == msn {
			return r
		}
	}
	return nil
}

// remoteStatus returns the status of a request that the peer has refused with code.
func remoteStatus(code transport.Code) Status {
	if code == transport.DDPNoBuffer {
		return StatusNoReceive
	}
	switch uint16(code) >> 8 {
	case uint16(transport.RDMAPInvalidSTag) >> 8, uint16(transport.DDPInvalidSTag) >> 8:
		return StatusRemoteAccess
	case uint16(transport.DDPQueue) >> 8:
		return StatusRemoteInvalid
	}
	switch code {
	case transport.RDMAPVersion, transport.RDMAPOpcode:
		return StatusRemoteInvalid
	case transport.RDMAPOpNoInvalidate:
		return StatusRemoteAccess
	}
	return StatusRemoteOp
}

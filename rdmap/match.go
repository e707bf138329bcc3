package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Each segment of a Read Response is matched with the Read that awaits it, octet for octet,
// as RFC 5040 section 5.2.2 permits. Because of this check the sink of a Read needs only the
// right LocalWrite.

// matchResponse checks a segment of a Read Response before it is placed.
func (s *Stream) matchResponse(h ddp.TaggedHeader, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Window > 0 {
		return s.matchAny(h, n)
	}
	return s.matchNext(h, n)
}

// PlacedTagged matches a segment of a Read Response, in the sender's order, with the Read that
// it must belong to. The segment may have been placed earlier, out of order. The check ensures
// that octets that have arrived twice do not replace octets that have not arrived. PlacedTagged
// also counts the segment.
func (u upper) PlacedTagged(h ddp.TaggedHeader, n int) error {
	op := opcodeOf(h.RsvdULP)
	u.s.received(op, 0, uint64(n))
	if op != OpReadResponse {
		return nil
	}
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return u.s.matchNext(h, n)
}

// matchNext checks that the segment is the next one of the response to the oldest Read.
// Preconditions: s.mu is held.
func (s *Stream) matchNext(h ddp.TaggedHeader, n int) error {
	r, err := s.oldestRead()
	if err != nil {
		return err
	}
	if err := r.continues(h, uint64(n)); err != nil {
		s.endFor(r, StatusBadResponse, asFault(0, err).Code)
		return err
	}
	r.got += uint64(n)
	return nil
}

func (s *Stream) oldestRead() (*Request, error) {
	if s.orq.len() == 0 {
		return nil, transport.Faultf(transport.RDMAPOpcode, "Read Response, but no Read is outstanding")
	}
	r := s.orq.at(0)
	if r.Kind != KindRead {
		return nil, transport.Faultf(transport.RDMAPOpcode, "Read Response, expected the response to the %v", r.opcode())
	}
	return r, nil
}

// continues checks that a segment with n octets is the next of the response to r. The STag and
// the TO of an empty segment are ignored. RFC 5041 section 5.3 only recommends rising TOs. They are
// required here, so that the number of octets determines which octets have arrived.
func (r *Request) continues(h ddp.TaggedHeader, n uint64) error {
	left := r.Len - r.got
	switch {
	case n > 0 && h.STag != r.sink.STag:
		return transport.Faultf(transport.DDPInvalidSTag, "Read Response to %v, expected %v", h.STag, r.sink.STag)
	case n > 0 && h.TO != r.sink.TO+r.got:
		return transport.Faultf(transport.DDPBounds, "Read Response to TO %#x, expected %#x", h.TO, r.sink.TO+r.got)
	case n > left:
		return transport.Faultf(transport.DDPBounds, "Read Response %d octets too long", n-left)
	case h.Last && n < left:
		return transport.Faultf(transport.DDPBounds, "Read Response %d octets too short", left-n)
	}
	return nil
}

// matchAny checks a segment that may have arrived out of order: it must lie in the sink of one of
// the Reads. PlacedTagged checks later that it belongs to the right one. Preconditions: s.mu is
// held.
func (s *Stream) matchAny(h ddp.TaggedHeader, n int) error {
	if n == 0 {
		return nil
	}
	for k := range s.orq.len() {
		if r := s.orq.at(k); r.Kind == KindRead && r.covers(h, uint64(n)) {
			return nil
		}
	}
	if s.orq.len() == 0 {
		return transport.Faultf(transport.RDMAPOpcode, "Read Response, but no Read is outstanding")
	}
	return transport.Faultf(transport.DDPBounds, "Read Response to %v TO %#x length %d matches no Read", h.STag, h.TO, n)
}

// PredictTagged describes the rest of the response to the k-th outstanding Read: the peer sends
// the responses in order, each as contiguous octets.
func (u upper) PredictTagged(k int) (h ddp.TaggedHeader, access stag.Access, n uint64, ok bool) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Window > 0 || k >= s.orq.len() || s.orq.at(k).Kind != KindRead {
		return h, 0, 0, false
	}
	r := s.orq.at(k)
	h = ddp.TaggedHeader{RsvdULP: OpReadResponse.control(), STag: r.sink.STag, TO: r.sink.TO + r.got}
	return h, stag.LocalWrite, r.Len - r.got, true
}

func (r *Request) covers(h ddp.TaggedHeader, n uint64) bool {
	off := h.TO - r.sink.TO
	switch {
	case h.STag != r.sink.STag || h.TO < r.sink.TO || off > r.Len || n > r.Len-off:
		return false
	case h.Last:
		return off+n == r.Len
	}
	return true
}

// deliverResponse completes the oldest Read. Before that it invalidates the sink, if the Read
// requests that. The lock is not held then, because Fill may have pinned the region.
func (s *Stream) deliverResponse() error {
	s.received(OpReadResponse, 1, 0)
	sink, invalidate, err := s.responded()
	if err != nil || !invalidate {
		return err
	}
	v := s.config.Table.InvalidateSTag(s.config.Scope, sink, false)

	s.mu.Lock()
	defer s.mu.Unlock()
	if v != stag.None {
		s.endFor(s.orq.at(0), StatusBind, transport.RDMAPLocalCatastrophic)
		return transport.Faultf(transport.RDMAPLocalCatastrophic, "invalidating the sink %v: %v", sink, v)
	}
	s.answered()
	return nil
}

// responded records that the response to the oldest Read is complete. If the sink must be
// invalidated first, it returns its STag; otherwise the Read completes.
func (s *Stream) responded() (sink stag.STag, invalidate bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.oldestRead()
	if err != nil {
		return 0, false, err
	}
	if r.Flags&Invalidating != 0 {
		return r.sink.STag, true, nil
	}
	s.answered()
	return 0, false, nil
}

package ddp

import (
	"math"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// place checks a segment and places its payload (RFC 5041 section 7.1). It places
// all of the payload or nothing. turn says that all earlier segments were
// placed.
func (s *Stream) place(g *segment, turn bool) error {
	if g.tagged {
		return s.placeTagged(g)
	}
	g.q = s.queue(g.u.QN)
	return s.placeUntagged(g, turn)
}

func (s *Stream) placeTagged(g *segment) error {
	r, off, access, err := s.admit(&g.t, len(g.payload))
	if r == nil {
		return err
	}
	if access == stag.RemoteWrite {
		err = r.PlaceWrite(off, g.payload)
	} else {
		err = r.Place(off, g.payload)
	}
	r.Unpin()
	return err
}

// admit checks a tagged segment with n octets of payload, and pins their region; r is
// nil if there is nothing to place. access is the required right.
func (s *Stream) admit(h *TaggedHeader, n int) (r *stag.Region, off uint64, access stag.Access, err error) {
	access, err = s.upper.Tagged(*h, n)
	if err != nil || n == 0 {
		return nil, 0, access, err
	}
	r, off, v := s.table.Pin(s.scope, h.STag, access, h.TO, n)
	if v != stag.None {
		return nil, 0, access, transport.Faultf(violationCode(v), "%v: STag %v TO %#x length %d", v, h.STag, h.TO, n)
	}
	return r, off, access, nil
}

// violationCode returns the code for a refused access. RFC 5041 has none for a missing
// right, and RFC 5040 reserves its own for Read Requests, so the nearest DDP code is sent.
func violationCode(v stag.Violation) transport.Code {
	switch v {
	case stag.InvalidSTag:
		return transport.DDPInvalidSTag
	case stag.NotAssociated, stag.AccessDenied:
		return transport.DDPNotAssociated
	case stag.Wrap:
		return transport.DDPWrap
	case stag.Bounds:
		return transport.DDPBounds
	default:
		return transport.DDPLocalCatastrophic
	}
}

func (s *Stream) placeUntagged(g *segment, turn bool) error {
	q, h, payload := g.q, &g.u, g.payload
	if q == nil {
		return transport.Faultf(transport.DDPQueue, "QN %d", h.QN)
	}
	if err := s.upper.Untagged(h.fields(), len(payload)); err != nil {
		return err
	}
	buf, err := q.buffer(h, turn)
	if err != nil {
		return err
	}
	if err := checkOffset(h.MO, len(payload), stag.TotalLen(buf)); err != nil {
		return err
	}
	if turn { // a segment that is early is checked at its turn
		if err := q.placed.check(h.MO, len(payload), h.Last); err != nil {
			return err
		}
	}
	if len(payload) == 0 {
		return nil
	}
	return stag.PlaceAt(buf, uint64(h.MO), payload)
}

// checkOffset checks n octets at mo against a buffer of size octets. It checks the MO
// of empty segments, too, because that determines the length that is delivered.
func checkOffset(mo uint32, n int, size uint64) error {
	size = min(size, math.MaxUint32) // no message is longer
	end := uint64(mo) + uint64(n)
	switch {
	case uint64(mo) > size:
		return transport.Faultf(transport.DDPOffset, "MO %d in a buffer of %d octets", mo, size)
	case end > size:
		return transport.Faultf(transport.DDPTooLong, "message reaches octet %d of a buffer of %d", end, size)
	}
	return nil
}

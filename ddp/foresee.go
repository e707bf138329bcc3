package ddp

import (
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An Expecter is an [Upper] that knows which tagged messages are to come.
type Expecter interface {
	// Expect tells of the k-th message from now on: the header of its next segment, as
	// if that were not the last, the right that Tagged will answer with, and how many
	// octets are to come. ok is false if that is not known, or if the peer may send
	// something else in between as well.
	Expect(k int) (h TaggedHeader, access stag.Access, n uint64, ok bool)
}

// Foresee is that of [transport.Foreseer].
func (s *Stream) Foresee(dst []transport.Foreseen, size, room int) []transport.Foreseen {
	upper, ok := s.upper.(Expecter)
	if !ok || s.err != nil || s.ahead.limit > 0 || size <= TaggedLen {
		return dst
	}
	for k := 0; room > 0; k++ {
		h, access, n, ok := upper.Expect(k)
		if !ok || n == 0 {
			break
		}
		part := int(min(n, uint64(room)))
		mem := s.pin(h, access, part)
		if mem == nil {
			break
		}
		dst = foresee(dst, h, mem, size-TaggedLen, uint64(part) == n)
		room -= part
	}
	return dst
}

// pin pins n octets of memory that h names, and returns them; nil if that cannot be.
func (s *Stream) pin(h TaggedHeader, access stag.Access, n int) []byte {
	r, off, v := s.table.Pin(s.scope, h.STag, access, h.TO, n)
	if v != stag.None {
		return nil
	}
	mem := r.Bytes(off, n)
	if mem == nil {
		r.Unpin()
		return nil
	}
	s.pinned = append(s.pinned, r)
	return mem
}

// foresee cuts mem into the payloads of segments, n octets each. The message ends with
// mem if all is true; else only whole segments count.
func foresee(dst []transport.Foreseen, h TaggedHeader, mem []byte, n int, all bool) []transport.Foreseen {
	for len(mem) > n || all && len(mem) > 0 {
		k := min(n, len(mem))
		h.Last = all && k == len(mem)
		f := transport.Foreseen{Payload: mem[:k:k]}
		h.Append(f.Head[:0])
		dst = append(dst, f)
		mem = mem[k:]
		h.TO += uint64(k)
	}
	return dst
}

// Release is that of [transport.Foreseer].
func (s *Stream) Release() {
	for i, r := range s.pinned {
		r.Unpin()
		s.pinned[i] = nil
	}
	s.pinned = s.pinned[:0]
}

// Placed is that of [transport.Foreseer]: Segment for one whose payload is in place.
func (s *Stream) Placed(seq uint64, f *transport.Foreseen) error {
	if s.err != nil || seq < s.next {
		return nil
	}
	n := len(f.Payload)
	h, err := ParseTagged(f.Head[:])
	if err == nil {
		err = s.placed(&h, n)
	}
	if err == nil {
		err = s.deliver(&segment{tagged: true, t: h, n: n})
	}
	if err != nil {
		return s.refuse(f.Head[:], TaggedLen+n, err)
	}
	s.next++
	return nil
}

// placed is placeTagged without the copy.
func (s *Stream) placed(h *TaggedHeader, n int) error {
	r, off, err := s.admit(h, n)
	if r != nil {
		r.Touched(off, n)
		r.Unpin()
	}
	return err
}

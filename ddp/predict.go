package ddp

import (
	"unsafe"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// mostPredicted is the most messages that are predicted together: more messages are then short,
// and are read and copied faster than they are found and compared with each other.
const mostPredicted = 64

// Predict implements [transport.Placer]. If it cannot predict everything that will arrive, and no more
// than half of what there is room for, it predicts nothing: it is better to read all of it at once than
// only this small part.
func (s *Stream) Predict(dst []transport.PredictedSegment, size, room int) []transport.PredictedSegment {
	if s.err != nil || s.ahead.limit > 0 || size <= TaggedLen {
		return dst
	}
	from, got := len(dst), 0
	for k := 0; got < room && k < mostPredicted; k++ {
		h, access, n, ok := s.upper.PredictTagged(k)
		if !ok || n == 0 {
			return dst
		}
		part := int(min(n, uint64(room-got)))
		mem, began := s.pin(h, access, part)
		if mem == nil {
			break
		}
		first := len(dst)
		dst = predict(dst, h, mem, size-TaggedLen, uint64(part) == n)
		for i := range dst[first:] {
			dst[first+i].Began = began
		}
		got += part
	}
	if room-got > room/2 {
		return dst[:from]
	}
	return dst
}

// A place is memory to be read into, and its region, which is pinned.
type place struct {
	region *stag.Region
	mem    []byte
}

// pin pins the n octets of memory that h names, and returns them, or nil if that is not possible.
// began is the result of Region.Began before they are written.
func (s *Stream) pin(h TaggedHeader, access stag.Access, n int) (mem []byte, began uint64) {
	r, off, v := s.table.Pin(s.scope, h.STag, access, h.TO, n)
	if v != stag.None {
		return nil, 0
	}
	mem = r.Bytes(off, n)
	if mem == nil || r.PeersMayWrite() || s.overlaps(mem) {
		r.Unpin()
		return nil, 0
	}
	s.places = append(s.places, place{r, mem})
	return mem, r.Began()
}

// overlaps reports whether other data is to be read into octets of mem. An application may
// request that: the last data wins, and each part is verified separately.
func (s *Stream) overlaps(mem []byte) bool {
	from, to := span(mem)
	for i := range s.places {
		a, b := span(s.places[i].mem)
		if from < b && a < to {
			return true
		}
	}
	return false
}

// span returns the addresses of mem. It does not move: it is on the heap, or not memory of Go.
func span(mem []byte) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(&mem[0]))
	return from, from + uintptr(len(mem))
}

// predict cuts mem into the payloads of segments, n octets each. If all is true the message
// ends with mem; otherwise only whole segments count.
func predict(dst []transport.PredictedSegment, h TaggedHeader, mem []byte, n int, all bool) []transport.PredictedSegment {
	for len(mem) > n || all && len(mem) > 0 {
		k := min(n, len(mem))
		h.Last = all && k == len(mem)
		f := transport.PredictedSegment{Payload: mem[:k:k]}
		h.Append(f.Head[:0])
		dst = append(dst, f)
		mem = mem[k:]
		h.TO += uint64(k)
	}
	return dst
}

// Unpin implements [transport.Placer].
func (s *Stream) Unpin() {
	for i := range s.places {
		s.places[i].region.Unpin()
	}
	clear(s.places)
	s.places = s.places[:0]
}

// Placed implements [transport.Placer]. It is Segment for a segment whose payload is in place.
func (s *Stream) Placed(seq uint64, f *transport.PredictedSegment) error {
	if s.err != nil || seq < s.next {
		return nil
	}
	n := len(f.Payload)
	h, err := ParseTagged(f.Head[:])
	if err == nil {
		err = s.placed(&h, f)
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
func (s *Stream) placed(h *TaggedHeader, f *transport.PredictedSegment) error {
	r, off, _, err := s.admit(h, len(f.Payload))
	if r != nil {
		r.MarkWritten(f.Began, off, len(f.Payload))
		r.Unpin()
	}
	return err
}

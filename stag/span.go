package stag

import "github.com/goiwarp/iwarp/internal/blockcopy"

// A Span is a run of octets: Len octets from Off in a region, or in Mem if Region is
// nil. With neither, what is placed in it is discarded, and nothing can be gathered from
// it. Lists of spans say where a message is gathered from and scattered to.
//
// The creator of a span has checked its bounds and rights, and keeps a [Region.Hold] while
// it is in use.
type Span struct {
	Region *Region
	Mem    []byte
	Off    uint64
	Len    int
}

// TotalLen returns the number of octets of the list.
func TotalLen(spans []Span) uint64 {
	var n uint64
	for i := range spans {
		n += uint64(spans[i].Len)
	}
	return n
}

// PlaceAt scatters p over the list, from octet off of the list on. Each region is
// pinned for its part of the copy. The error is [ErrBounds], with nothing placed,
// if p does not fit; [ErrInvalid] if a region was invalidated, with the octets before
// it placed; or that of a Buffer. PlaceAt does not retain p.
func PlaceAt(spans []Span, off uint64, p []byte) error {
	if len(spans) == 1 && within(&spans[0], off, len(p)) {
		return spans[0].place(off, p)
	}
	if !fits(spans, off, len(p)) {
		return ErrBounds
	}
	for len(p) > 0 {
		var part Span
		part, spans = cut(spans, &off, len(p))
		if err := part.place(0, p[:part.Len]); err != nil {
			return err
		}
		p = p[part.Len:]
	}
	return nil
}

// ReadAt fills p from the list, from octet off of the list on, whether its spans
// are memory or a Buffer. It does not check that the regions are still VALID: the octets
// belong to the caller's own work request, which has a hold. The error is [ErrBounds]
// or that of [Region.ReadInto].
func ReadAt(spans []Span, p []byte, off uint64) error {
	if !fits(spans, off, len(p)) {
		return ErrBounds
	}
	for len(p) > 0 {
		var part Span
		part, spans = cut(spans, &off, len(p))
		if err := part.readInto(p[:part.Len]); err != nil {
			return err
		}
		p = p[part.Len:]
	}
	return nil
}

// Gather appends to dst the n octets of the list from octet off on, as slices that
// share memory with the spans; they are valid as long as the caller's holds. It allocates
// only if the capacity of dst is too small. ok is false, and dst unchanged, if some of the
// octets are in a Buffer (see [ReadAt]) or do not exist.
func Gather(dst [][]byte, spans []Span, off uint64, n int) (out [][]byte, ok bool) {
	if !fits(spans, off, n) {
		return dst, false
	}
	out = dst
	if len(spans) == 1 && n > 0 {
		b := spans[0].bytes(off, n)
		if b == nil {
			return dst, false
		}
		return append(out, b), true
	}
	for n > 0 {
		var part Span
		part, spans = cut(spans, &off, n)
		b := part.bytes(0, part.Len)
		if b == nil {
			return dst, false
		}
		out = append(out, b)
		n -= part.Len
	}
	return out, true
}

// Acquired is memory between Acquire and Release of a [MemoryBuffer].
type Acquired struct {
	Mem    []byte // nil: there is none
	region *Region
	off    uint64
}

// AcquireAt returns the memory of the n octets of the list from octet off on, for reading, if they belong to one
// [MemoryBuffer]. Release must follow at once. If Mem is nil, Release must not be called, and the octets must be read by
// ReadAt. The caller has a hold or a pin of the region. The error is that of the Buffer.
func AcquireAt(spans []Span, off uint64, n int) (a Acquired, err error) {
	if len(spans) != 1 || spans[0].Region == nil || spans[0].Region.buf == nil || !within(&spans[0], off, n) {
		return Acquired{}, nil
	}
	a.region, a.off = spans[0].Region, spans[0].Off+off
	if !a.region.contains(a.off, n) {
		return Acquired{}, ErrBounds
	}
	a.Mem, err = a.region.acquire(a.off, n, false)
	return a, err
}

// Release ends the use of the memory. The error is a [PanicError].
func (a *Acquired) Release() error { return a.region.release(a.off, len(a.Mem), false) }

// within reports whether n octets, at least one, at octet off are all in s.
func within(s *Span, off uint64, n int) bool {
	return n > 0 && off < uint64(s.Len) && uint64(n) <= uint64(s.Len)-off
}

func fits(spans []Span, off uint64, n int) bool {
	total := TotalLen(spans)
	return n >= 0 && off <= total && uint64(n) <= total-off
}

// cut returns the first octets of the list after *off, at most n and all of one span. It
// also returns the rest of the list, and sets *off to where that begins. At least one octet
// is left, and n is positive.
func cut(spans []Span, off *uint64, n int) (part Span, rest []Span) {
	for *off >= uint64(spans[0].Len) {
		*off -= uint64(spans[0].Len)
		spans = spans[1:]
	}
	part = spans[0]
	part.Off += *off
	part.Len = min(n, part.Len-int(*off))
	*off += uint64(part.Len)
	return part, spans
}

// bytes returns n octets of the span from its octet off on, or nil if the span is not
// memory. The octets are within the span.
func (s *Span) bytes(off uint64, n int) []byte {
	off += s.Off
	if s.Region != nil {
		return s.Region.Bytes(off, n)
	}
	if off > uint64(len(s.Mem)) || uint64(n) > uint64(len(s.Mem))-off {
		return nil
	}
	end := off + uint64(n)
	return s.Mem[off:end:end]
}

// Memory returns the octets of the span, which share its memory, or nil if they are in a Buffer.
func (s *Span) Memory() []byte { return s.bytes(0, s.Len) }

// place copies p to octet off of the span. p fits within the span.
func (s *Span) place(off uint64, p []byte) error {
	if r := s.Region; r != nil {
		if !r.Pin() {
			return ErrInvalid
		}
		err := r.Place(s.Off+off, p)
		r.Unpin()
		return err
	}
	if s.Mem == nil {
		return nil
	}
	b := s.bytes(off, len(p))
	if b == nil {
		return ErrBounds
	}
	blockcopy.Copy(b, p)
	return nil
}

func (s *Span) readInto(p []byte) error {
	if s.Region != nil {
		return s.Region.ReadInto(p, s.Off)
	}
	b := s.bytes(0, s.Len)
	if b == nil {
		return ErrBounds
	}
	blockcopy.Copy(p, b)
	return nil
}

package transport

// A Run is the segments that have come by now, in the sender's order and without a gap:
// each of them whole, its digest verified.
type Run interface {
	// Next returns the next segment, and nil if no more of them is whole. With that the
	// one before it counts as taken; what it returned last, if not nil, is presented again
	// after ErrStall. All octets are lent until the call that the Run was lent for ends.
	Next() []byte
}

// A RunPlacer is a [Placer] that takes many segments in one call: small ones cost more
// for the way through the layers than for their octets. An LLP that keeps the sender's
// order may call Segments where it would have called Segment for one after the other.
type RunPlacer interface {
	Placer

	// Segments takes the segments of run until it returns nil, or up to the first for
	// which it has an error. There is at least one. seq is the place of the first in the
	// sender's order.
	Segments(seq uint64, run Run) error
}

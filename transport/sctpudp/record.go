package sctpudp

// tsnWindow is how far a DATA chunk may be ahead of the oldest missing one. pion accepts
// none beyond that.
const tsnWindow = 1 << 13

// A record contains which DATA chunks of the peer have arrived, by their TSNs.
type record struct {
	next  uint32   // the oldest missing chunk
	ahead []uint64 // bits of the chunks after it, allocated when a chunk overtakes another
	early int      // how many of those have arrived
}

// known reports whether a chunk has arrived before.
func (r *record) known(tsn uint32) bool { return int32(tsn-r.next) < 0 || r.has(tsn) }

// beyond reports whether a chunk that is not known is too far ahead.
func (r *record) beyond(tsn uint32) bool { return tsn-r.next >= tsnWindow }

// take records a chunk that is neither known nor beyond.
func (r *record) take(tsn uint32) {
	if tsn != r.next {
		if r.ahead == nil {
			r.ahead = make([]uint64, tsnWindow/64)
		}
		r.ahead[tsn%tsnWindow/64] |= 1 << (tsn % 64)
		r.early++
		return
	}
	for r.next++; r.has(r.next); r.next++ {
		r.ahead[r.next%tsnWindow/64] &^= 1 << (r.next % 64)
		r.early--
	}
}

func (r *record) has(tsn uint32) bool {
	return r.ahead != nil && !r.beyond(tsn) && r.ahead[tsn%tsnWindow/64]&(1<<(tsn%64)) != 0
}

package sctpudp

// tsnWindow is how far ahead of the oldest DATA chunk that is missing one may be. pion
// takes no more.
const tsnWindow = 1 << 13

// A record tells which DATA chunks of the peer have come, by their TSNs.
type record struct {
	next  uint32   // the oldest that is missing
	ahead []uint64 // bits of those after it, made when the first one overtakes another
	early int      // how many of those have come
}

// known tells whether a chunk has come before.
func (r *record) known(tsn uint32) bool { return int32(tsn-r.next) < 0 || r.has(tsn) }

// beyond tells whether a chunk that is not known is further ahead than one may be.
func (r *record) beyond(tsn uint32) bool { return tsn-r.next >= tsnWindow }

// take notes a chunk that is neither known nor beyond.
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

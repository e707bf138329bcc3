package sctp

// window is how far a message may be ahead of the oldest missing one: as far as 16 bits
// can distinguish it from a message of the past (RFC 5043 section 10).
const window = 1<<15 - 1

// arrivals determines the place of each message of a session in the order of its sender, and
// accepts each place once. It does no I/O.
type arrivals struct {
	next  uint64 // the oldest missing message
	top   uint64 // one after the last message that has arrived
	ahead []uint64
}

// take records the message with this DDP-SSN, and returns its place.
func (a *arrivals) take(ssn uint16) (uint64, error) {
	d := ssn - uint16(a.next)
	seq := a.next + uint64(d)
	if d > window || d != 0 && a.has(seq) {
		return 0, violation("the DDP-SSN %d where %d was due", ssn, uint16(a.next))
	}
	a.top = max(a.top, seq+1)
	if d != 0 {
		a.set(seq)
		return seq, nil
	}
	a.next++
	for a.ahead != nil && a.has(a.next) {
		a.unset(a.next)
		a.next++
	}
	return seq, nil
}

// The bits of ahead, one for each place within the window, are allocated when the first
// message overtakes another.

func (a *arrivals) has(seq uint64) bool {
	return a.ahead != nil && a.ahead[seq%(window+1)/64]&(1<<(seq%64)) != 0
}

func (a *arrivals) set(seq uint64) {
	if a.ahead == nil {
		a.ahead = make([]uint64, (window+1)/64)
	}
	a.ahead[seq%(window+1)/64] |= 1 << (seq % 64)
}

func (a *arrivals) unset(seq uint64) { a.ahead[seq%(window+1)/64] &^= 1 << (seq % 64) }

package sctpudp

import "sync/atomic"

const (
	// receiveBuffer is how many octets of an association may wait to be read. It is small
	// enough that pion never accepts a TSN that is 32767 ahead (RFC 5043 section 10).
	receiveBuffer = 1 << 20
	// maxUnread is how many messages may wait, since the shortest costs as much memory as
	// a message of some hundred octets.
	maxUnread = 8192
)

// A room counts how much of the receive buffer of an association its unread messages
// occupy.
type room struct {
	octets, messages atomic.Int64 // occupied
	short            atomic.Bool  // little room was reported to the peer, or a chunk was refused
}

// left reports whether a DATA chunk can be taken. If not, the peer is told when it can.
func (r *room) left() bool {
	if r.full() {
		r.short.Store(true)
		return false
	}
	return true
}

// take takes the room for a DATA chunk. left has reported that there is room, and only the goroutine that reads takes any.
func (r *room) take(c chunk) {
	r.octets.Add(int64(c.octets()))
	if c.ends() {
		r.messages.Add(1)
	}
}

// full reports whether no more can be taken.
func (r *room) full() bool {
	return r.octets.Load() >= receiveBuffer || r.messages.Load() >= maxUnread
}

// free releases the room of a message. It reports true if the peer should be told.
func (r *room) free(octets int) bool {
	r.octets.Add(-int64(octets))
	r.messages.Add(-1)
	return r.again()
}

// told records how much room was reported to the peer. It reports true if the peer should
// be told of more.
func (r *room) told(octets uint32) bool {
	if octets < receiveBuffer/4 {
		r.short.Store(true)
	}
	return r.again()
}

// again reports true, once, when there is room again after there was little.
func (r *room) again() bool {
	return r.short.Load() && r.octets.Load() <= receiveBuffer/2 && r.messages.Load() <= maxUnread/2 &&
		r.short.CompareAndSwap(true, false)
}

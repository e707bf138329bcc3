package sctpudp

import "sync/atomic"

const (
	// receiveBuffer is how much of an association may be waiting to be read. It is small
	// enough for pion never to take a TSN that is 32767 ahead (RFC 5043 section 10).
	receiveBuffer = 1 << 20
	// maxUnread is how many messages may be, since the shortest costs as much memory as
	// one of some hundred octets.
	maxUnread = 8192
)

// A room counts what the messages of an association take of its receive buffer until they are
// read.
type room struct {
	octets, messages atomic.Int64 // taken
	short            atomic.Bool  // the peer was told of little, or got none
}

// left tells whether a DATA chunk can be taken. If not, the peer hears when it can.
func (r *room) left() bool {
	if r.full() {
		r.short.Store(true)
		return false
	}
	return true
}

// take takes what a DATA chunk needs, for which there is room: only the goroutine that reads takes any.
func (r *room) take(c chunk) {
	r.octets.Add(int64(c.octets()))
	if c.ends() {
		r.messages.Add(1)
	}
}

// full reports whether no more is taken.
func (r *room) full() bool {
	return r.octets.Load() >= receiveBuffer || r.messages.Load() >= maxUnread
}

// free gives back what a message had. It reports true if the peer should hear of it.
func (r *room) free(octets int) bool {
	r.octets.Add(-int64(octets))
	r.messages.Add(-1)
	return r.again()
}

// told notes how much the peer has been told of. It reports true if it should hear of
// more.
func (r *room) told(octets uint32) bool {
	if octets < receiveBuffer/4 {
		r.short.Store(true)
	}
	return r.again()
}

// again tells once that there is room where there was little.
func (r *room) again() bool {
	return r.short.Load() && r.octets.Load() <= receiveBuffer/2 && r.messages.Load() <= maxUnread/2 &&
		r.short.CompareAndSwap(true, false)
}

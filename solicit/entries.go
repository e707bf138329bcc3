package solicit

import (
	"math"
	"time"
)

// A state is where an operation stands.
type state uint8

const (
	unused  state = iota
	waiting       // in the queue of its class
	overdue       // out of it, and not reported yet
	granted       // it counts
	held          // it timed out, and counts until its octets can come no more
)

// An entry is one operation. Times are since the window was made.
type entry struct {
	n        int64
	enqueued time.Duration
	granted  time.Duration
	prev     uint32 // in its queue
	next     uint32 // in its queue, or among the unused
	heap     int32  // where it is in Window.large, from 1; 0: it is not
	gen      uint32 // how many operations it has been
	class    Class
	state    state
}

// A table holds all entries. Number 0 is none. An entry that is not used is found again through the
// first unused one, so that nothing is allocated once there are enough.
type table struct {
	entries []entry
	unused  uint32
}

func (t *table) init() { t.entries = make([]entry, 1, 64) }

// at returns an entry, until take is called.
func (t *table) at(i uint32) *entry { return &t.entries[i] }

// take returns the number of an unused entry.
func (t *table) take() uint32 {
	i := t.unused
	if i == 0 {
		t.entries = append(t.entries, entry{})
		i = uint32(len(t.entries) - 1)
	}
	e := &t.entries[i]
	t.unused = e.next
	e.next = 0
	e.gen++
	return i
}

// give makes an entry unused. One that has been as many operations as its part of an id can tell is
// never used again, for an id names one operation for ever.
func (t *table) give(i uint32) {
	e := &t.entries[i]
	*e = entry{gen: e.gen}
	if e.gen == math.MaxUint32 {
		return
	}
	e.next = t.unused
	t.unused = i
}

// id names the operation that an entry is now. No id is 0.
func (t *table) id(i uint32) uint64 { return uint64(t.entries[i].gen)<<32 | uint64(i) }

// find returns the entry of an operation, 0 if it is over or there was none.
func (t *table) find(id uint64) uint32 {
	i := uint32(id)
	if int64(i) >= int64(len(t.entries)) || t.entries[i].gen != uint32(id>>32) || t.entries[i].state == unused {
		return 0
	}
	return i
}

// A queue is entries in order.
type queue struct{ head, tail uint32 }

func (t *table) push(q *queue, i uint32) {
	e := &t.entries[i]
	e.prev, e.next = q.tail, 0
	if q.tail == 0 {
		q.head = i
	} else {
		t.entries[q.tail].next = i
	}
	q.tail = i
}

func (t *table) remove(q *queue, i uint32) {
	e := &t.entries[i]
	if e.prev == 0 {
		q.head = e.next
	} else {
		t.entries[e.prev].next = e.next
	}
	if e.next == 0 {
		q.tail = e.prev
	} else {
		t.entries[e.next].prev = e.prev
	}
	e.prev, e.next = 0, 0
}

package solicit

import (
	"math"
	"time"
)

// A state is the state of an operation.
type state uint8

const (
	unused  state = iota
	waiting       // in the queue of its class
	overdue       // out of the queue, and not reported yet
	granted       // its octets count
	held          // timed out; its octets count until they can no longer arrive
)

// An entry is one operation. Times are since the window was made.
type entry struct {
	n        int64
	enqueued time.Duration
	granted  time.Duration
	prev     uint32 // in its queue
	next     uint32 // in its queue, or among the unused
	heap     int32  // its place in Window.large, from 1; 0: none
	gen      uint32 // how many operations have used it
	class    Class
	state    state
}

// A table holds all entries. Number 0 is not an entry. The unused entries form a list, so that nothing
// is allocated once there are enough.
type table struct {
	entries []entry
	unused  uint32
}

func (t *table) init() { t.entries = make([]entry, 1, 64) }

// at returns an entry. The pointer is valid until take is called.
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

// give makes an entry unused. An entry whose gen is at its maximum is never used again, because an id
// identifies one operation for ever.
func (t *table) give(i uint32) {
	e := &t.entries[i]
	*e = entry{gen: e.gen}
	if e.gen == math.MaxUint32 {
		return
	}
	e.next = t.unused
	t.unused = i
}

// id returns the id of the operation that an entry holds. No id is 0.
func (t *table) id(i uint32) uint64 { return uint64(t.entries[i].gen)<<32 | uint64(i) }

// find returns the entry of an operation, or 0 if it has ended or never existed.
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

// Package postqueue provides a queue to which many goroutines post, and from which one goroutine
// takes without waiting for them.
package postqueue

import (
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/ring"
)

// A Queue holds entries of type T. The zero value is empty.
//
// Posters take turns under its mutex. The taker, one goroutine at a time, reads the posted
// entries through its own view, and takes the lock only when that view is used up.
type Queue[T any] struct {
	mu     lockorder.Mutex[lockorder.RecvQueue]
	ring   ring.Ring[T] // grows on use
	posted uint64
	free   uint64 // free places of the ring, as far as the posters know
	state  State

	// taken is how many of the posted entries have been taken, as far as the posters know. Only the
	// taker raises it, after its last use of those entries. A poster that reads an old value takes
	// a free place for a used one.
	taken atomic.Uint64

	// Fields of the taker.
	view  ring.Ring[T] // holds the entries posted before number until
	until uint64
	took  uint64 // becomes taken in Publish
}

// A State says which entries a queue still accepts. It never returns to an earlier state.
type State uint8

// The states.
const (
	Open    State = iota
	Refuses       // users post nothing more
	Ended         // nothing more is posted at all
)

// Initial is the initial number of places of a queue.
const Initial = 2

// LockIf locks q for posting, if its state is most or an earlier one.
func (q *Queue[T]) LockIf(most State) (ok bool) {
	q.mu.Lock()
	if q.state > most {
		q.mu.Unlock()
		return false
	}
	return true
}

// Unlock unlocks q after LockIf.
func (q *Queue[T]) Unlock() { q.mu.Unlock() }

// Next returns the entry that Post posts, for the caller to fill in: it holds what its last user
// left. q must be locked.
func (q *Queue[T]) Next() *T {
	if q.free == 0 {
		q.widen()
	}
	return q.ring.At(q.posted)
}

// Post posts the entry that Next returned. q must be locked.
func (q *Queue[T]) Post() {
	q.posted++
	q.free--
}

// widen counts the free places, and makes the ring larger if there is none. The old ring stays
// unchanged, because the taker may have it in view.
func (q *Queue[T]) widen() {
	taken := q.taken.Load()
	if q.posted-taken == uint64(len(q.ring)) {
		q.ring = q.ring.Grown(Initial, taken, q.posted)
	}
	q.free = uint64(len(q.ring)) - (q.posted - taken)
}

// Advance takes the queue to a state, unless it is there or beyond already. After the change it
// calls first, which may be nil, with q locked.
func (q *Queue[T]) Advance(to State, first func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state >= to {
		return
	}
	q.state = to
	if first != nil {
		first()
	}
}

// HasEnded reports whether the state is Ended.
func (q *Queue[T]) HasEnded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state == Ended
}

// Waiting reports whether there is an entry to take. Any goroutine may call it.
func (q *Queue[T]) Waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.posted != q.taken.Load()
}

// Posted returns how many entries there are to take, or fewer, but 0 only if there are none. Only
// the taker may call Posted and the methods below.
func (q *Queue[T]) Posted() int {
	if q.until == q.took {
		q.look()
	}
	return int(q.until - q.took)
}

// look extends the view to all posted entries.
func (q *Queue[T]) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.view, q.until = q.ring, q.posted
}

// At returns the k-th entry from the oldest, of the entries that Posted has counted.
func (q *Queue[T]) At(k int) *T { return q.view.At(q.took + uint64(k)) }

// Take removes the n oldest entries, which may be used until Publish.
func (q *Queue[T]) Take(n int) { q.took += uint64(n) }

// Publish gives the places of the taken entries to the posters.
func (q *Queue[T]) Publish() {
	if q.taken.Load() != q.took {
		q.taken.Store(q.took)
	}
}

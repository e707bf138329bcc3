// Package postqueue has a queue to which many goroutines post, and from which one takes without
// waiting for them.
package postqueue

import (
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/ring"
)

// A Queue has entries of type T. The zero value is empty.
//
// Posters take turns under its mutex. The taker, one goroutine at a time, looks at what was
// posted through a view of its own, and takes the lock only when it has used that up.
type Queue[T any] struct {
	mu     lockorder.Mutex[lockorder.RecvQueue]
	ring   ring.Ring[T] // grows on use
	posted uint64
	free   uint64 // places of the ring, as far as is known
	state  State

	// taken is how many of the posted ones have been taken, as far as the posters know. Only the
	// taker raises it, behind the last use of what it stands for; a poster that sees it late
	// takes a place for full that is free.
	taken atomic.Uint64

	// The taker's.
	view  ring.Ring[T] // holds what was posted before number until
	until uint64
	took  uint64 // is taken after Publish
}

// A State is what a queue still takes. It never goes back.
type State uint8

// The states.
const (
	Open    State = iota
	Refuses       // users post nothing more
	Ended         // nothing more is posted at all
)

// Initial is how many places a queue has at first.
const Initial = 2

// LockIf locks q for posting, if its state is most, or an earlier one.
func (q *Queue[T]) LockIf(most State) (ok bool) {
	q.mu.Lock()
	if q.state > most {
		q.mu.Unlock()
		return false
	}
	return true
}

// Unlock ends what LockIf began.
func (q *Queue[T]) Unlock() { q.mu.Unlock() }

// Next is the entry that Post posts, to be filled in: it holds what its last user left. q is
// locked.
func (q *Queue[T]) Next() *T {
	if q.free == 0 {
		q.widen()
	}
	return q.ring.At(q.posted)
}

// Post posts the entry that Next returned. q is locked.
func (q *Queue[T]) Post() {
	q.posted++
	q.free--
}

// widen looks how many places are free, and makes the ring larger if there is none. The old one
// stays as it is, for it may be in view.
func (q *Queue[T]) widen() {
	taken := q.taken.Load()
	if q.posted-taken == uint64(len(q.ring)) {
		q.ring = q.ring.Grown(Initial, taken, q.posted)
	}
	q.free = uint64(len(q.ring)) - (q.posted - taken)
}

// Advance takes the queue to a state, unless it is there or beyond; then it calls first, which
// may be nil, with q locked.
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

// Waiting reports whether there is an entry to take; any goroutine may ask.
func (q *Queue[T]) Waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.posted != q.taken.Load()
}

// Posted is how many entries there are to take, or fewer but not none. It is the taker's, and so
// are the methods below.
func (q *Queue[T]) Posted() int {
	if q.until == q.took {
		q.look()
	}
	return int(q.until - q.took)
}

// look takes what was posted into view.
func (q *Queue[T]) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.view, q.until = q.ring, q.posted
}

// At is the k-th entry from the oldest, of those that Posted has counted.
func (q *Queue[T]) At(k int) *T { return q.view.At(q.took + uint64(k)) }

// Take takes the n oldest entries, which may be used until Publish.
func (q *Queue[T]) Take(n int) { q.took += uint64(n) }

// Publish gives the places of what was taken to the posters.
func (q *Queue[T]) Publish() {
	if q.taken.Load() != q.took {
		q.taken.Store(q.took)
	}
}

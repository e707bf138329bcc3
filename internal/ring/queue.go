package ring

// A Queue holds entries in the order in which they were pushed. The zero value is empty.
type Queue[T any] struct {
	ring Ring[T] // grows on use
	// Oldest is the number of the oldest entry, and End that of the next entry to be pushed.
	Oldest, End uint64
}

// Len returns the number of entries.
func (q *Queue[T]) Len() int { return int(q.End - q.Oldest) }

// Places returns how many entries the queue has memory for.
func (q *Queue[T]) Places() int { return len(q.ring) }

// Next returns the entry that Push adds, for the caller to fill in: it holds what its last user
// left. least is the initial number of places of the queue.
func (q *Queue[T]) Next(least int) *T {
	if q.Len() == len(q.ring) {
		q.ring = q.ring.Grown(least, q.Oldest, q.End)
	}
	return q.ring.At(q.End)
}

// Push adds the entry that Next has returned.
func (q *Queue[T]) Push() { q.End++ }

// Take removes the oldest entry and returns it. It may be used until the next call of Next.
func (q *Queue[T]) Take() *T {
	oldest := q.ring.At(q.Oldest)
	q.Oldest++
	return oldest
}

// Move moves the oldest entries to dst, and leaves zeros in their places. When no entry is left,
// the numbers start again, so that the queue reuses places that are in the processor's cache.
func (q *Queue[T]) Move(dst []T) int {
	var zero T
	n := min(len(dst), q.Len())
	for i := range n {
		e := q.Take()
		dst[i], *e = *e, zero
	}
	if q.Oldest == q.End {
		q.Oldest, q.End = 0, 0
	}
	return n
}

// Fit releases memory if there is much more than n entries need. n must not be less than the
// number of entries.
func (q *Queue[T]) Fit(n int) {
	if len(q.ring) > 2*n {
		q.ring = q.ring.moved(n, q.Oldest, q.End)
	}
}

// Drop drops all entries, and their memory.
func (q *Queue[T]) Drop() { q.ring, q.Oldest = nil, q.End }

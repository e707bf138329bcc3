package ring

// A Queue has entries in the order in which they were pushed. The zero value is empty.
type Queue[T any] struct {
	ring Ring[T] // grows on use
	// Oldest and End are the numbers of the oldest entry, and of the next one.
	Oldest, End uint64
}

// Len is the number of entries.
func (q *Queue[T]) Len() int { return int(q.End - q.Oldest) }

// Places is how many entries there is memory for.
func (q *Queue[T]) Places() int { return len(q.ring) }

// Next is the entry that Push adds, to be filled in: it holds what its last user left. least is
// how many places the queue has at first.
func (q *Queue[T]) Next(least int) *T {
	if q.Len() == len(q.ring) {
		q.ring = q.ring.Grown(least, q.Oldest, q.End)
	}
	return q.ring.At(q.End)
}

// Push adds the entry that Next has returned.
func (q *Queue[T]) Push() { q.End++ }

// Take takes the oldest entry, which may be used until the next call of Next.
func (q *Queue[T]) Take() *T {
	oldest := q.ring.At(q.Oldest)
	q.Oldest++
	return oldest
}

// Move moves the oldest entries to dst, and leaves zeros in their places. The numbers begin again
// when none is left: then the places are used again that are in the processor's cache.
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

// Fit gives memory back where there is much more of it than for n entries, which is no less than
// there are.
func (q *Queue[T]) Fit(n int) {
	if len(q.ring) > 2*n {
		q.ring = q.ring.moved(n, q.Oldest, q.End)
	}
}

// Drop drops all entries, and their memory.
func (q *Queue[T]) Drop() { q.ring, q.Oldest = nil, q.End }

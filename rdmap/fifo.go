package rdmap

import "github.com/goiwarp/iwarp/internal/ring"

// A fifo is a queue in a ring that grows on use and never shrinks.
type fifo[T any] struct {
	ring       ring.Ring[T]
	head, tail uint64
}

func (q *fifo[T]) len() int { return int(q.tail - q.head) }

// at returns the k-th element from the front, k < len.
func (q *fifo[T]) at(k int) T { return *q.ring.At(q.head + uint64(k)) }

func (q *fifo[T]) push(v T) {
	if q.len() == len(q.ring) {
		q.ring = q.ring.Grown(4, q.head, q.tail)
	}
	*q.ring.At(q.tail) = v
	q.tail++
}

func (q *fifo[T]) pop() T {
	var zero T
	place := q.ring.At(q.head)
	v := *place
	*place = zero
	q.head++
	return v
}

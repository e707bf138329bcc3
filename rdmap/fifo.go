package rdmap

// A fifo is a queue whose ring grows on use and is kept.
type fifo[T any] struct {
	ring []T // a power of two long
	head int
	n    int
}

func (q *fifo[T]) len() int { return q.n }

// at returns the k-th element from the front, k < len.
func (q *fifo[T]) at(k int) T { return q.ring[(q.head+k)&(len(q.ring)-1)] }

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *fifo[T]) pop() T {
	var zero T
	v := q.ring[q.head]
	q.ring[q.head] = zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

func (q *fifo[T]) grow() {
	ring := make([]T, max(4, 2*len(q.ring)))
	for k := range q.n {
		ring[k] = q.at(k)
	}
	q.ring, q.head = ring, 0
}

package rdmap

import "github.com/goiwarp/iwarp/internal/ring"

// A sendQueue is the ring of a stream's requests. They are numbered as posted:
//
//	head       flushed      filled       posted
//	 | out, and   | in the     | not yet    |
//	 | not        | LLP's      | filled     |
//	 | complete   | batch      |            |
//
// A Read may complete before Flushed is called for its batch, so head may be greater than
// flushed. The ring holds pointers, so that requests do not move when it grows. Requests that
// are not in use are in spare. The one that was returned last is used next, because it is in the
// processor's cache.
type sendQueue struct {
	ring   ring.Ring[*Request] // nil in places without a request
	spare  []*Request          // free requests; together with those in the ring, len(ring) requests
	depth  uint64              // maximum number of the poster's requests
	first  uint64              // number of the poster's first request: 1 after an RTR; set once
	head   uint64
	flush  uint64
	filled uint64
	posted uint64
}

func (q *sendQueue) at(i uint64) *Request { return *q.ring.At(i) }

func (q *sendQueue) full() bool { return q.posted-max(q.head, q.first) >= q.depth }

// tail returns the request that will get the number posted.
func (q *sendQueue) tail() *Request {
	if q.posted-q.head == uint64(len(q.ring)) {
		q.grow()
	}
	place := q.ring.At(q.posted)
	if *place == nil { // otherwise an earlier Post has refused the request
		last := len(q.spare) - 1
		*place = q.spare[last]
		q.spare = q.spare[:last]
	}
	return *place
}

// giveBack removes r, the oldest request, from the queue.
func (q *sendQueue) giveBack(r *Request) {
	*q.ring.At(q.head) = nil
	q.spare = append(q.spare, r)
	q.head++
}

// grow doubles the ring. It does not change the old ring, which Fill may be reading.
func (q *sendQueue) grow() {
	before := len(q.ring)
	q.ring = q.ring.Grown(1, q.head, q.posted)
	fresh := make([]Request, len(q.ring)-before)
	q.spare = make([]*Request, 0, len(q.ring))
	for i := range fresh {
		q.spare = append(q.spare, &fresh[i])
	}
}

package rdmap

import "github.com/goiwarp/iwarp/internal/ring"

// A sendQueue is the ring of a stream's requests. They are numbered as posted:
//
//	head       flushed      filled       posted
//	 | out, and   | in the     | not yet    |
//	 | not        | LLP's      | filled     |
//	 | complete   | batch      |            |
//
// A Read may complete before the batch that holds it is known to be out, so head may
// be ahead of flushed. The ring holds pointers: it grows, requests stay where they
// are. Those that are not in use are spare, and the one that was given back last is the
// next to be used: it is in the cache.
type sendQueue struct {
	ring   ring.Ring[*Request] // nil where no request is
	spare  []*Request          // as many as there are places in the ring, less those in it
	depth  uint64              // of the poster's requests
	first  uint64              // the first of the poster's requests: 1 behind an RTR; set once
	head   uint64
	flush  uint64
	filled uint64
	posted uint64
}

func (q *sendQueue) at(i uint64) *Request { return *q.ring.At(i) }

func (q *sendQueue) full() bool { return q.posted-max(q.head, q.first) >= q.depth }

// tail returns the request that will be number posted.
func (q *sendQueue) tail() *Request {
	if q.posted-q.head == uint64(len(q.ring)) {
		q.grow()
	}
	place := q.ring.At(q.posted)
	if *place == nil { // else it was not posted after all
		last := len(q.spare) - 1
		*place = q.spare[last]
		q.spare = q.spare[:last]
	}
	return *place
}

// giveBack takes r, the oldest request, out of the queue.
func (q *sendQueue) giveBack(r *Request) {
	*q.ring.At(q.head) = nil
	q.spare = append(q.spare, r)
	q.head++
}

// grow makes a ring of twice the size. The old one stays as it is, for Fill may be
// looking at it.
func (q *sendQueue) grow() {
	before := len(q.ring)
	q.ring = q.ring.Grown(2, q.head, q.posted)
	fresh := make([]Request, len(q.ring)-before)
	q.spare = make([]*Request, 0, len(q.ring))
	for i := range fresh {
		q.spare = append(q.spare, &fresh[i])
	}
}

package rdmap

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
	ring   []*Request // a power of two long; nil where no request is
	spare  []*Request // as many as there are places in the ring, less those in it
	depth  uint64     // of the poster's requests
	first  uint64     // the first of the poster's requests: 1 behind an RTR; set once
	head   uint64
	flush  uint64
	filled uint64
	posted uint64
}

func at(ring []*Request, i uint64) *Request { return ring[i&uint64(len(ring)-1)] }

func (q *sendQueue) at(i uint64) *Request { return at(q.ring, i) }

func (q *sendQueue) full() bool { return q.posted-max(q.head, q.first) >= q.depth }

// tail returns the request that will be number posted.
func (q *sendQueue) tail() *Request {
	if q.posted-q.head == uint64(len(q.ring)) {
		q.grow()
	}
	place := &q.ring[q.posted&uint64(len(q.ring)-1)]
	if *place == nil { // else it was not posted after all
		last := len(q.spare) - 1
		*place = q.spare[last]
		q.spare = q.spare[:last]
	}
	return *place
}

// giveBack takes r, the oldest request, out of the queue.
func (q *sendQueue) giveBack(r *Request) {
	q.ring[q.head&uint64(len(q.ring)-1)] = nil
	q.spare = append(q.spare, r)
	q.head++
}

// grow makes a ring of twice the size. The old one stays as it is, for Fill may be
// looking at it.
func (q *sendQueue) grow() {
	fresh := make([]Request, max(2, len(q.ring)))
	ring := make([]*Request, len(q.ring)+len(fresh))
	for i := q.head; i < q.posted; i++ {
		ring[i&uint64(len(ring)-1)] = q.at(i)
	}
	q.ring, q.spare = ring, make([]*Request, 0, len(ring))
	for i := range fresh {
		q.spare = append(q.spare, &fresh[i])
	}
}

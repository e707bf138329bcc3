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
// are.
type sendQueue struct {
	ring   []*Request // a power of two long
	depth  uint64     // of the poster's requests
	first  uint64     // the first of the poster's requests: 1 behind an RTR
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
	return q.at(q.posted)
}

// grow makes a ring of twice the size. The old one stays as it is, for Fill may be
// looking at it.
func (q *sendQueue) grow() {
	fresh := make([]Request, max(2, len(q.ring)))
	ring := make([]*Request, len(q.ring)+len(fresh))
	for i := q.head; i < q.posted; i++ {
		ring[i&uint64(len(ring)-1)] = q.at(i)
	}
	for i := range fresh {
		ring[(q.posted+uint64(i))&uint64(len(ring)-1)] = &fresh[i]
	}
	q.ring = ring
}

package iwarp

import (
	"sync"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// A recvQueue is the receive queue of a QP. It is the rdmap.Receives of its stream.
type recvQueue struct {
	qp    *QP
	depth int

	mu     sync.Mutex
	ring   []recv // grows on use, to depth
	head   int
	n      int
	ended  bool // nothing is taken any more
	flush  Status
	rnrOut bool // the wait for a receive was in vain: a missing one is an error now
}

// A recv is one posted receive.
type recv struct {
	id     uint64
	spans  []stag.Span
	waiter *waiter // of a blocking helper, else nil
}

const queueInitial = 8

// post queues one receive; fill gets its slot, with spans emptied.
func (q *recvQueue) post(fill func(*recv) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return ended(q.qp.cause())
	}
	if q.n == len(q.ring) && !q.grow() {
		return ErrQueueFull
	}
	r := &q.ring[(q.head+q.n)%len(q.ring)]
	r.spans = r.spans[:0]
	if err := fill(r); err != nil {
		return err
	}
	if !q.qp.recvRoom.take(q.depth) {
		return ErrQueueFull
	}
	q.n++
	return nil
}

func (q *recvQueue) grow() bool {
	if len(q.ring) == q.depth {
		return false
	}
	ring := make([]recv, min(q.depth, max(queueInitial, 2*len(q.ring))))
	n := copy(ring, q.ring[q.head:])
	copy(ring[n:], q.ring[:q.head])
	q.ring, q.head = ring, 0
	return true
}

// Posted is how many receives wait for a message.
func (q *recvQueue) Posted() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// Buffer returns where the k-th message from now goes.
func (q *recvQueue) Buffer(k int) []stag.Span {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ring[(q.head+k)%len(q.ring)].spans
}

// Missing is asked when a message has come and nothing is posted.
func (q *recvQueue) Missing() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rnrOut || q.ended {
		return nil
	}
	return q.qp.noReceive()
}

// giveUp makes the next message that finds no receive an error.
func (q *recvQueue) giveUp() {
	q.mu.Lock()
	q.rnrOut = true
	q.mu.Unlock()
}

// Deliver completes the oldest receive.
func (q *recvQueue) Deliver(m rdmap.Received) {
	wc := WC{QP: q.qp, Op: OpRecv, Len: m.Len}
	if m.Solicited {
		wc.Flags |= Solicited
	}
	if m.Invalidated {
		wc.STag = m.STag
	}
	q.qp.finishRecv(q.pop(), &wc)
}

// pop takes the oldest receive out.
func (q *recvQueue) pop() recv {
	q.mu.Lock()
	defer q.mu.Unlock()
	slot := &q.ring[q.head]
	r := *slot
	slot.waiter = nil
	if q.head++; q.head == len(q.ring) {
		q.head = 0
	}
	q.n--
	q.rnrOut = false
	return r
}

// end refuses receives from now on. The first receive that is still posted will
// complete with first, the others flushed.
func (q *recvQueue) end(first Status) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended, q.flush = true, first
	}
}

// drop completes what is left after end. The stream no longer places anything.
func (q *recvQueue) drop() {
	q.mu.Lock()
	status := q.flush
	q.mu.Unlock()
	for q.Posted() > 0 {
		q.qp.finishRecv(q.pop(), &WC{QP: q.qp, Op: OpRecv, Status: status, Vendor: q.qp.vendor()})
		status = StatusFlushed
	}
}

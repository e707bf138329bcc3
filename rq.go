package iwarp

import (
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// A recvQueue is the receive queue of a QP. It is the rdmap.Receives of its stream.
//
// Posters take turns under mu. The receiving goroutine looks at what was posted through
// a view of its own, and takes the lock only when it has used that up.
type recvQueue struct {
	qp    *QP
	depth int

	mu     sync.Mutex
	ring   []recv // number i is at i modulo its length; grows on use, to depth
	posted uint64
	ended  bool // nothing is taken any more
	flush  Status

	// taken is how many of the posted ones have been filled or dropped.
	taken atomic.Uint64
	// The wait for a receive was in vain: a missing one is an error now.
	rnrOut atomic.Bool

	// The receiving goroutine's.
	view  []recv // a ring that holds what was posted before number until
	until uint64
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
	if q.posted-q.taken.Load() == uint64(len(q.ring)) && !q.grow() {
		return ErrQueueFull
	}
	r := at(q.ring, q.posted)
	r.spans = r.spans[:0]
	if err := fill(r); err != nil {
		return err
	}
	if !q.qp.recvRoom.take(q.depth) {
		return ErrQueueFull
	}
	q.posted++
	return nil
}

func at(ring []recv, i uint64) *recv { return &ring[i%uint64(len(ring))] }

// grow makes a larger ring. The old one stays as it is, for it may be in view.
func (q *recvQueue) grow() bool {
	if len(q.ring) == q.depth {
		return false
	}
	ring := make([]recv, min(q.depth, max(queueInitial, 2*len(q.ring))))
	for i := q.taken.Load(); i != q.posted; i++ {
		*at(ring, i) = *at(q.ring, i)
	}
	q.ring = ring
	return true
}

// Posted is how many receives wait for a message, or fewer but not none.
func (q *recvQueue) Posted() int {
	taken := q.taken.Load()
	if q.until == taken {
		q.mu.Lock()
		q.view, q.until = q.ring, q.posted
		q.mu.Unlock()
	}
	return int(q.until - taken)
}

// Buffer returns where the k-th message from now goes.
func (q *recvQueue) Buffer(k int) []stag.Span {
	return at(q.view, q.taken.Load()+uint64(k)).spans
}

// Missing is asked when a message has come and nothing is posted.
func (q *recvQueue) Missing() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rnrOut.Load() || q.ended {
		return nil
	}
	return q.qp.noReceive()
}

// giveUp makes the next message that finds no receive an error.
func (q *recvQueue) giveUp() { q.rnrOut.Store(true) }

// waiting reports whether there is a receive for the next message; any goroutine may
// ask.
func (q *recvQueue) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.posted != q.taken.Load()
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
	q.finish(&wc)
}

// finish completes the oldest receive with wc.
func (q *recvQueue) finish(wc *WC) {
	id, w := q.pop()
	wc.ID = id
	if w != nil {
		q.qp.recvRoom.free()
		w.finish(wc)
		return
	}
	q.qp.received.add(wc)
}

// pop takes the oldest receive out. Its slot is a poster's from then on.
func (q *recvQueue) pop() (id uint64, w *waiter) {
	taken := q.taken.Load()
	r := at(q.view, taken)
	id, w = r.id, r.waiter
	q.taken.Store(taken + 1)
	if q.rnrOut.Load() {
		q.rnrOut.Store(false)
	}
	return id, w
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
		q.finish(&WC{QP: q.qp, Op: OpRecv, Status: status, Vendor: q.qp.vendor()})
		status = StatusFlushed
	}
	q.qp.received.push()
}

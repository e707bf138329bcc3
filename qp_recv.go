package iwarp

import (
	"fmt"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/postqueue"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A recvQueue is the receive queue of a QP. It implements rdmap.ReceiveQueue. The receiving
// goroutine takes what was posted.
type recvQueue struct {
	postqueue.Queue[recv]
	qp    *QP
	flush Status // status of the first receive that remains at the end; set with that end

	// rnrOut is set when the wait for a receive has timed out: a missing receive is then an
	// error. It is set before the reader is woken, and the reader clears it when it takes the
	// next receive.
	rnrOut atomic.Bool
}

// A recv is one posted receive.
type recv struct {
	id     uint64
	spans  []stag.Span
	helper *helper // of a blocking helper, else nil
}

// post queues receives, in order, up to the first that cannot be queued, and returns how many
// it has queued. w is not nil for the receive of a blocking helper.
func (q *recvQueue) post(wrs []RecvWR, w *helper) (n int, err error) {
	if !q.LockIf(postqueue.Open) {
		return 0, qpconn.EndError(q.qp.cause()) // cause locks the QP
	}
	defer q.Unlock()
	room := q.qp.recvSlots.Reserve(q.qp.cfg.RecvDepth, len(wrs))
	for ; n < len(wrs); n++ {
		r := q.Next()
		if r.spans, _, err = q.qp.spans(r.spans[:0], wrs[n].Local, stag.LocalWrite); err != nil {
			break
		}
		if n == room {
			err = fmt.Errorf("%w: %d receives", ErrQueueFull, q.qp.cfg.RecvDepth)
			break
		}
		r.id, r.helper = wrs[n].ID, w
		q.Post()
	}
	if n < room {
		q.qp.recvSlots.Release(room - n)
	}
	return n, err
}

// draw moves a receive from an SRQ to the queue, to which nothing else is posted. It returns
// false if the SRQ is empty, or if the queue accepts nothing any more.
func (q *recvQueue) draw(from *SRQ) (drawn bool) {
	if !q.LockIf(postqueue.Refuses) {
		return false
	}
	defer q.Unlock()
	if drawn = from.take(q.qp, q.Next()); drawn {
		q.qp.recvSlots.Reserve(q.qp.cfg.RecvDepth, 1)
		q.Post()
	}
	return drawn
}

// Buffer returns the buffer of the k-th message from now.
func (q *recvQueue) Buffer(k int) []stag.Span {
	r := q.At(k)
	if r.helper != nil {
		r.abandon()
	}
	return r.spans
}

// abandon prepares the receive of a cancelled helper: octets for a region that has been closed
// since are discarded.
func (r *recv) abandon() {
	if !r.helper.left.Load() {
		return
	}
	for i := range r.spans {
		if s := &r.spans[i]; s.Region != nil && !s.Region.Valid() {
			*s = stag.Span{Len: s.Len}
		}
	}
}

// Missing is called when a message has arrived and no receive is posted.
func (q *recvQueue) Missing() error {
	if q.rnrOut.Load() || q.HasEnded() || q.qp.cfg.RNRWait < 0 {
		return nil
	}
	return transport.ErrStall
}

// giveUp makes the next message that finds no receive an error.
func (q *recvQueue) giveUp() { q.rnrOut.Store(true) }

// Deliver completes the oldest receive.
func (q *recvQueue) Deliver(m rdmap.Received) {
	if q.durable() {
		q.deliver(m)
	}
}

// durable makes what the peer has written durable, if DurableOnReceive is set. If that fails
// the QP ends.
func (q *recvQueue) durable() bool {
	err := q.qp.cfg.PD.durable.Flush(q.qp.id)
	if err != nil {
		q.qp.fail(transport.Faultf(transport.RDMAPLocalCatastrophic, "durable on receive: %w", err))
	}
	return err == nil
}

func (q *recvQueue) deliver(m rdmap.Received) {
	w, wc := q.take()
	wc.Len = m.Len
	if m.Solicited {
		wc.Flags |= Solicited
	}
	if m.Invalidated {
		wc.STag = m.STag
	}
	if m.Opcode.IsImmediate() {
		wc.Op, wc.Imm = OpRecvImm, m.Imm
	}
	q.finish(w)
}

// DeliverSends completes the oldest receives: in one batch where no blocking helper waits for
// them.
func (q *recvQueue) DeliverSends(op rdmap.Opcode, lens []uint32) {
	if !q.durable() {
		return
	}
	for len(lens) > 0 {
		if n := q.plain(len(lens)); n > 0 {
			q.complete(lens[:n], op.Solicited())
			lens = lens[n:]
			continue
		}
		q.deliver(rdmap.Received{Opcode: op, Len: lens[0], Solicited: op.Solicited()})
		lens = lens[1:]
	}
}

// plain returns how many of the n oldest receives were posted by the user, up to the first of
// a blocking helper.
func (q *recvQueue) plain(n int) int {
	for i := range n {
		if q.At(i).helper != nil {
			return i
		}
	}
	return n
}

// complete puts the completions of the oldest receives, with messages of these lengths,
// directly into the CQ. It releases their slots before any goroutine can see the completions.
func (q *recvQueue) complete(lens []uint32, solicited bool) {
	if q.rnrOut.Load() {
		q.rnrOut.Store(false)
	}
	if q.qp.received.n > 0 {
		q.push() // completions of earlier messages
	}
	q.tell()
	var flags Flags
	if solicited {
		flags = Solicited
	}
	cq := q.qp.recvCQ
	cq.mu.Lock()
	fit := 0
	for ; fit < len(lens); fit++ {
		wc := cq.next()
		if wc == nil {
			break
		}
		wc.ID, wc.QP, wc.Op, wc.Flags, wc.Len = q.At(fit).id, q.qp, OpRecv, flags, lens[fit]
		clear(q.At(fit).spans) // see take
		cq.added(wc)
	}
	q.Take(len(lens))
	q.Publish()
	cq.pushed(fit == len(lens))
	if fit < len(lens) {
		q.qp.overflow.Store(true)
		q.qp.recvSlots.Release(len(lens) - fit) // no Poll does
	}
}

// take removes the oldest receive from the queue, and begins its completion wc. It returns the
// helper of the receive, or nil. The caller must call finish next.
func (q *recvQueue) take() (w *helper, wc *WC) {
	r := q.At(0)
	clear(r.spans) // so that the entry, which may stay unused for long, does not retain the user's memory
	q.Take(1)
	if q.rnrOut.Load() {
		q.rnrOut.Store(false)
	}
	if w = r.helper; w != nil {
		wc = &w.wc
	} else {
		wc = q.qp.received.next()
	}
	wc.ID, wc.QP, wc.Op = r.id, q.qp, OpRecv
	return w, wc
}

// finish publishes a completion that take has begun.
func (q *recvQueue) finish(w *helper) {
	if w != nil {
		q.push() // what was posted before it
		q.qp.received.finish(w)
		return
	}
	if q.qp.received.add() {
		q.push()
	}
}

// push puts the collected completions into the CQ. Before any goroutine can see them, it releases the
// slots of the receives that were taken, and updates the counters of Stats.
func (q *recvQueue) push() {
	q.Publish()
	q.tell()
	q.qp.received.push()
}

// tell updates the counters of Stats.
func (q *recvQueue) tell() {
	if s := q.qp.stream; s != nil { // the QP was established
		s.BatchDone()
	}
}

// end refuses receives from now on. The first receive that is still posted will complete with
// the status first, the others with StatusFlushed. If the QP was resumed for a receive of its SRQ
// and has not taken it, another QP that waits is resumed for it.
func (q *recvQueue) end(first Status) {
	q.Advance(postqueue.Ended, func() { q.flush = first })
	q.qp.cfg.SRQ.feed(1)
}

// drop completes the receives that remain after end. The stream no longer places anything.
func (q *recvQueue) drop() {
	status := q.flush
	for q.Posted() > 0 {
		w, wc := q.take()
		wc.Status, wc.Vendor = status, q.qp.vendor()
		q.finish(w)
		status = StatusFlushed
	}
	q.push()
}

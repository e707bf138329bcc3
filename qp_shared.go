package iwarp

import (
	"fmt"
	"sync/atomic"

	"github.com/goiwarp/iwarp/rdmap"
)

// sharing is the state of a QP that uses an SRQ.
type sharing struct {
	taken atomic.Uint64 // receives taken from the SRQ
	// limit is that of SetRecvLimit; 0 means not armed. The goroutine that sets it to 0 by
	// compare-and-swap raises the event. It is checked after each change of the number that it
	// limits.
	limit atomic.Int64
}

// sharedReceives is the receive queue of a QP with an SRQ. When a message begins and the QP's
// own queue is empty, a receive is moved from the SRQ to that queue.
type sharedReceives struct{ *recvQueue }

// Posted returns 1 if there is a receive for the message that has begun.
func (q sharedReceives) Posted() int {
	if q.recvQueue.Posted() == 0 && !q.qp.draw() {
		return 0
	}
	return q.recvQueue.Posted()
}

// receives returns the queue from which the QP's stream takes its receives.
func (qp *QP) receives() rdmap.ReceiveQueue {
	if qp.cfg.SRQ != nil {
		return sharedReceives{&qp.rq}
	}
	return &qp.rq
}

// draw takes a receive from the SRQ, if it has one and the QP may take another. Only the
// receiving goroutine calls it.
func (qp *QP) draw() bool {
	if qp.isCapped() || !qp.rq.draw(qp.cfg.SRQ) {
		return false
	}
	qp.shared.taken.Add(1)
	qp.checkRecvLimit()
	return true
}

func (qp *QP) isCapped() bool { return qp.recvSlots.Used() >= qp.cfg.RecvDepth }

// mayDraw reports whether draw would succeed. If not, the QP is woken when that changes.
func (qp *QP) mayDraw() bool {
	return qp.recvSlots.ResumeWhenFree(qp.cfg.RecvDepth, &qp.staller) && qp.cfg.SRQ.offers(qp)
}

// hasReceive reports whether there is a receive for the next message, or will be none. Any
// goroutine may call it.
func (qp *QP) hasReceive() bool {
	return qp.rq.HasEnded() || qp.rq.Waiting() || qp.cfg.SRQ != nil && qp.mayDraw()
}

// SetRecvLimit arms EventRecvLimit on a QP with an SRQ. The event is raised once, when the
// messages of the peer occupy more than n receives, which may be at once. A receive is
// occupied from the first segment of its message until its completion has been polled. Call
// SetRecvLimit again to arm it again; 0 disarms it. A limit above QPConfig.RecvDepth, which
// the peer cannot exceed, is refused (draft-hilland-rddp-verbs section 6.3.8).
func (qp *QP) SetRecvLimit(n int) error {
	switch {
	case qp.cfg.SRQ == nil:
		return errHasNoSRQ
	case n < 0 || n > qp.cfg.RecvDepth:
		return fmt.Errorf("iwarp: receive limit %d is not within 0..%d", n, qp.cfg.RecvDepth)
	}
	qp.shared.limit.Store(int64(n))
	qp.checkRecvLimit()
	return nil
}

func (qp *QP) checkRecvLimit() {
	n := qp.shared.limit.Load()
	if n != 0 && int64(qp.recvSlots.Used()) > n && qp.shared.limit.CompareAndSwap(n, 0) {
		qp.rnic.raise(Event{Kind: EventRecvLimit, QP: qp})
	}
}

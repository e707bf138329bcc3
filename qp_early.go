package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/rdmap"
)

// Work requests may be posted while the QP is Idle (draft-hilland-rddp-verbs section 6.2.1).
// They are checked when they are posted, and wait here until the stream exists, which needs
// the results of the connection's set-up.

// postEarly queues send work requests of an Idle QP. It refuses those of a blocking helper:
// called in Setup, the helper would wait for the end of Setup.
func (qp *QP) postEarly(wrs []SendWR, known []int64, ws []*helper) error {
	if ws != nil {
		return unconnected(qp)
	}
	qp.mu.Lock()
	if qp.conn.Load() != nil {
		qp.mu.Unlock()
		return qp.postSend(wrs, known, nil)
	}
	defer qp.mu.Unlock()
	for i := range wrs {
		if err := qp.addEarly(&wrs[i], known[min(i, len(known)):]); err != nil {
			return &PostError{N: i, Err: err}
		}
	}
	return nil
}

// addEarly queues one work request. mu is held.
func (qp *QP) addEarly(wr *SendWR, known []int64) error {
	if qp.err != nil {
		return qp.err
	}
	if qp.sendSlots.Reserve(qp.cfg.SendDepth, 1) == 0 { // before fill, as in postSend
		return qp.postError(ErrQueueFull)
	}
	var r rdmap.Request
	if err := qp.fill(&r, wr, known); err != nil {
		qp.sendSlots.Release(1)
		return err
	}
	wr.named(r.Enable)
	r.Hold()
	qp.early = append(qp.early, r)
	return nil
}

// start moves the QP to RTS. Its stream first sends what was posted early.
func (qp *QP) start(conn *qpconn.Conn) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	// The queue has a slot for each of them, and each was checked when it was posted.
	_, _ = qp.stream.Post(len(qp.early), func(i int, r *rdmap.Request) error {
		*r = qp.early[i]
		return nil
	})
	qp.early = nil
	qp.staller.Resume = func() { conn.Resume() }
	qp.conn.Store(conn)
}

// flushEarly completes the work requests of a QP that was never established. The QP has
// recorded the cause.
func (qp *QP) flushEarly() {
	qp.mu.Lock()
	early := qp.early
	qp.early = nil
	qp.mu.Unlock()
	for i := range early {
		early[i].Release()
		events{qp}.Complete(&early[i], StatusFlushed, 0)
	}
	events{qp}.Completed()
}

// isFenced reports whether posted work waits for the initiator's first message.
func (qp *QP) isFenced() bool {
	conn := qp.conn.Load()
	return conn != nil && conn.Fenced()
}

// waiting adds to err what a blocking helper has waited for, if err is that of its context.
func (qp *QP) waiting(ctx context.Context, op Op, err error) error {
	switch cause := ctx.Err(); {
	case err == nil || cause == nil || !errors.Is(err, cause) || errors.Is(err, net.ErrClosed):
		return err
	case op != OpRecv && qp.isFenced():
		return fmt.Errorf("iwarp: %v: waiting for the initiator's first message, before which a responder may not send (MPAOptions.EarlyResponderSend): %w", op, err)
	}
	return fmt.Errorf("iwarp: %v: %w", op, err)
}

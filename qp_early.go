package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/rdmap"
)

// Work requests may be posted while the QP is Idle (draft-hilland-rddp-verbs section
// 6.2.1). They are checked then, and wait here until there is a stream, which needs
// to know what the connection's set-up has negotiated.

// postEarly queues send work requests of an Idle QP. A blocking helper is refused: in
// Setup it would wait for itself.
func (qp *QP) postEarly(wrs []SendWR, ws []*helper) error {
	if ws != nil {
		return errNotConnected
	}
	qp.mu.Lock()
	if qp.conn.Load() != nil {
		qp.mu.Unlock()
		return qp.postSend(wrs, nil)
	}
	defer qp.mu.Unlock()
	for i := range wrs {
		if err := qp.addEarly(&wrs[i]); err != nil {
			return &PostError{N: i, Err: err}
		}
	}
	return nil
}

// addEarly queues one work request. mu is held.
func (qp *QP) addEarly(wr *SendWR) error {
	if qp.err != nil {
		return qp.err
	}
	var r rdmap.Request
	if err := qp.fill(&r, wr); err != nil {
		return err
	}
	if qp.sendSlots.Reserve(qp.cfg.SendDepth, 1) == 0 {
		return qp.postError(ErrQueueFull)
	}
	if r.Enable != nil {
		wr.named(r.Enable)
	}
	qp.early = append(qp.early, r)
	return nil
}

// start takes the QP to RTS: what was posted early is the first that its stream has to
// send.
func (qp *QP) start(conn *qpconn.Conn) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	// There is room for all of them, and each was found good when it was posted.
	_, _ = qp.stream.Post(len(qp.early), func(i int, r *rdmap.Request) error {
		*r = qp.early[i]
		return nil
	})
	qp.early = nil
	qp.staller.Resume = conn.Resume
	qp.conn.Store(conn)
}

// flushEarly completes what was posted to a QP that was never established, and which
// therefore has recorded why.
func (qp *QP) flushEarly() {
	qp.mu.Lock()
	early := qp.early
	qp.early = nil
	qp.mu.Unlock()
	for i := range early {
		events{qp}.Complete(&early[i], StatusFlushed, 0)
	}
	events{qp}.Completed()
}

// isFenced reports whether what is posted waits for the initiator's first message.
func (qp *QP) isFenced() bool {
	conn := qp.conn.Load()
	return conn != nil && conn.Fenced()
}

// waiting says what the wait of a blocking helper was for, if err is that of its context.
func (qp *QP) waiting(ctx context.Context, op Op, err error) error {
	switch cause := ctx.Err(); {
	case err == nil || cause == nil || !errors.Is(err, cause) || errors.Is(err, net.ErrClosed):
		return err
	case op != OpRecv && qp.isFenced():
		return fmt.Errorf("iwarp: %v: waiting for the initiator's first message, before which a responder may not send (MPAOptions.EarlyResponderSend): %w", op, err)
	}
	return fmt.Errorf("iwarp: %v: %w", op, err)
}

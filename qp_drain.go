package iwarp

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/internal/qpconn"
)

// Drain waits until all work requests that were posted to the send queue before the call have
// completed, successfully or not. Their completions are then on the CQ (unless they were
// unsignaled), and the memory that they name belongs to the caller again. Work that is posted
// meanwhile may still be outstanding.
//
// On an established QP receives stay posted, since only messages of the peer complete them. If
// the QP is ending, or is being closed, Drain waits until it has ended; its receives are then
// flushed, too, and nothing is outstanding. To drain both queues, as ib_drain_qp does by moving the QP to the
// error state, call [QP.Abort] or [QP.Close].
//
// Drain changes nothing and may be called at any time, except while the QP is Idle, because
// its work then waits for the connection. If ctx ends first the error wraps that of ctx.
func (qp *QP) Drain(ctx context.Context) error {
	conn := qp.conn.Load()
	if conn == nil {
		return endUnconnected(qp)
	}
	upTo, _ := qp.stream.Counts()
	err := qp.drains.Wait(ctx, func() bool {
		conn.Post() // work may be left that no goroutine has started to send
		_, completed := qp.stream.Counts()
		return completed >= upTo
	})
	if err == nil && conn.Stage() != qpconn.Open {
		select {
		case <-qp.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("iwarp: drain: %w", err)
	}
	return nil
}

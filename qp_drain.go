package iwarp

import (
	"context"
	"fmt"
)

// Drain waits until the send queue has done what was posted before the call: each of
// those work requests has completed, successfully or not, its completion is on the CQ
// (or, if it was unsignaled, would be), and the memory that it names is the caller's
// again. What was posted meanwhile may be under way.
//
// On an established QP receives stay posted, since only the peer's messages complete
// them. A QP that is ending is waited for until it has ended: then its receives are
// flushed too, and nothing is outstanding at all. To drain both queues, as ib_drain_qp
// does by way of the error state, call [QP.Abort] or [QP.Close]: they return when that
// is so.
//
// Drain changes nothing and may be called at any time, but for an Idle QP, whose work
// waits for the connection. It fails with an error that wraps that of ctx.
func (qp *QP) Drain(ctx context.Context) error {
	conn := qp.conn.Load()
	if conn == nil {
		return errNotConnected
	}
	upTo, _ := qp.stream.Counts()
	for {
		progress := qp.drains.Listen()
		conn.Post() // what was left for a goroutine that has not come
		_, completed := qp.stream.Counts()
		if completed >= upTo {
			qp.drains.Leave()
			break
		}
		select {
		case <-progress:
			qp.drains.Leave()
		case <-ctx.Done():
			qp.drains.Leave()
			return fmt.Errorf("iwarp: drain: %w", ctx.Err())
		}
	}
	if qp.State() == StateRTS {
		return nil
	}
	select {
	case <-qp.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("iwarp: drain: %w", ctx.Err())
	}
}

package iwarp

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/postqueue"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

var (
	errNotConnected = fmt.Errorf("iwarp: the QP is not connected yet")
	errQPClosed     = fmt.Errorf("iwarp: queue pair closed: %w", net.ErrClosed)
	errAborted      = fmt.Errorf("iwarp: aborted: %w", net.ErrClosed)
	errCloseTimeout = fmt.Errorf("iwarp: close: %w", os.ErrDeadlineExceeded)
	errBadClose     = fmt.Errorf("iwarp: the peer sent a message after this side had ended the stream: %w", net.ErrClosed)
)

// abortTime bounds how long the goroutines of a QP that was aborted are waited for: they
// return at once, unless a Buffer or a Flusher holds them up.
const abortTime = time.Second

// fail ends the stream for an error that this side found. It reports false if the stream was
// ending already.
func (qp *QP) fail(cause error) bool { return qp.conn.Load().Fail(cause) }

// Close ends the QP gracefully: further posts are refused, work that is queued and
// RDMA Reads of the peer are finished, then the connection is ended, and when the
// peer has ended its half too the receive queue is flushed. If that takes longer than
// Config.CloseTimeout the QP is aborted, and Close returns an error that matches
// os.ErrDeadlineExceeded. Closing a QP that has ended does nothing.
//
// A Buffer of this program that does not return keeps the QP from ending; then Close returns
// a second after the timeout with an error that says so, and the QP ends when the Buffer
// returns. From inside a Buffer's method Close returns at once, with an error, and the end
// goes on without it.
//
// While memory windows are bound to the QP, which its peer may be using, Close fails
// with ErrWindowBound and changes nothing: invalidate them first
// (draft-hilland-rddp-verbs section 6.1.4). A QP that ends in any other way, by Abort for
// one, invalidates them.
func (qp *QP) Close() error {
	if qp.conn.Load() == nil {
		return errNotConnected
	}
	if n := qp.stream.Windows().Len(); n > 0 {
		return fmt.Errorf("iwarp: close queue pair: %w: %d of them", clause{ErrWindowBound}, n)
	}
	qp.drain()
	if stag.InBuffer() {
		qp.rnic.tasks.Start(func() { _ = qp.closeGracefully() })
		return qp.waitEnded(0)
	}
	return qp.closeGracefully()
}

// drain refuses work from now on, and begins to wait until there is none left.
func (qp *QP) drain() {
	qp.stream.Refuse()
	qp.rq.Advance(postqueue.Refuses, nil)
	qp.conn.Load().Drain()
}

// closeGracefully is Close after posting has been refused.
func (qp *QP) closeGracefully() error {
	ctx, cancel := context.WithTimeout(context.Background(), qp.rnic.cfg.CloseTimeout)
	defer cancel()
	if !qp.endWithin(ctx, errCloseTimeout) {
		return nil
	}
	if err := qp.waitEnded(abortTime); err != nil {
		return err
	}
	return errCloseTimeout
}

// endWithin ends a QP to which nobody can post any more: gracefully, when its work is done,
// and returns when it has ended. If ctx ends first it aborts the QP for cause, reports true,
// and does not wait for the end.
func (qp *QP) endWithin(ctx context.Context, cause error) (aborted bool) {
	select {
	case <-qp.done:
		return false
	case <-qp.conn.Load().Drained():
		qp.endSending()
	case <-ctx.Done():
	}
	select {
	case <-qp.done:
		return false
	case <-ctx.Done():
	}
	qp.abort(cause)
	return true
}

// endSending ends our half of the stream of a QP whose work is done.
func (qp *QP) endSending() {
	if qp.conn.Load().Stage() >= qpconn.Closing {
		return
	}
	qp.stream.Shut()
	qp.rq.end(StatusFlushed)
	qp.conn.Load().EndSending()
}

// Terminate ends the QP with a Terminate message that tells the peer that this side
// cannot go on: "local catastrophic error" (0/0/00), without naming a message
// (draft-hilland-rddp-verbs section 6.2.2.3). Everything that is not complete is
// flushed. It returns when the QP has ended; a peer that does not end its half keeps
// that waiting for two seconds at most. A responder to which nothing has come yet may
// not send, and only ends the connection. Only an established QP can be terminated: one
// that is ending or has ended answers with an error. For Buffers see [QP.Close].
func (qp *QP) Terminate() error {
	if qp.conn.Load() == nil {
		return errNotConnected
	}
	if qp.State() != StateRTS || !qp.fail(transport.Faultf(transport.RDMAPLocalCatastrophic, "the application cannot go on")) {
		return qp.cause()
	}
	return qp.waitEnded(qpconn.PeerEndTime + abortTime)
}

// Abort ends the QP at once, with a reset of the connection and without a
// Terminate; everything that is not complete is flushed, and memory windows that are
// bound to the QP are invalidated. If a Buffer of this program does not return within a
// second Abort returns an error that matches os.ErrDeadlineExceeded, and the QP has ended
// when the Buffer returns. From inside a Buffer's method it does not wait, and returns an
// error.
func (qp *QP) Abort() error {
	if qp.conn.Load() == nil {
		return errNotConnected
	}
	qp.abort(errAborted)
	return qp.waitEnded(abortTime)
}

func (qp *QP) abort(cause error) {
	select {
	case <-qp.done:
		return
	default:
	}
	qp.conn.Load().Abort(cause)
}

// waitEnded waits until a QP whose end has begun has ended, but no longer than d.
func (qp *QP) waitEnded(d time.Duration) error { return endwait.Ended("the queue pair", qp.done, d) }

package iwarp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/errtext"
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

// unconnected returns why a QP without a connection can do nothing: it has none yet, or its set-up has failed.
func unconnected(qp *QP) error { return cmp.Or(qp.Err(), errNotConnected) }

// hasEnded reports whether a QP has ended, or its set-up has failed.
func hasEnded(qp *QP) bool { return closed.Is(qp.done) }

// endUnconnected ends a QP without a connection: nothing is left to do if its set-up has failed.
func endUnconnected(qp *QP) error {
	if hasEnded(qp) {
		return nil
	}
	return errNotConnected
}

// abortTime limits the wait for the goroutines of an aborted QP. They return soon, unless code of the
// program blocks them: see package endwait. Hundreds of QPs that end at once on a slow machine take seconds.
const abortTime = 5 * time.Second

// fail ends the stream because of an error that this side has found. It returns false if the
// stream is already ending.
func (qp *QP) fail(cause error) bool { return qp.conn.Load().Fail(cause) }

// Close ends the QP gracefully. It refuses further posts, completes the work that is queued
// and the RDMA Reads of the peer, ends the connection, and flushes the receive queue when the
// peer has ended its half, too. If that takes longer than Config.CloseTimeout the QP is
// aborted, and Close returns an error that matches os.ErrDeadlineExceeded. Closing a QP that
// has ended does nothing. If the QP ends with an error meanwhile, Close returns nil, and [QP.Err]
// returns that error. An example is a message of the peer for which no receive was posted, which
// a Terminate reports to the peer.
//
// Over a net.Conn that has no CloseWrite there is no half to end: the connection is closed as a
// whole, and if the peer is sending then, the last messages to it may be lost. See [RNIC.Client].
//
// A method of a Buffer, or of a net.Conn of the program, that does not return keeps the QP from
// ending. Close then returns an error that matches os.ErrDeadlineExceeded five seconds after the
// timeout, and the QP ends when the method returns. If Close is
// called from inside a method of a Buffer or a Flusher, it returns an error at once, and the QP
// ends in the background.
//
// While memory windows are bound to the QP, Close fails with ErrWindowBound and changes
// nothing, because the peer may be using them: invalidate them first (draft-hilland-rddp-verbs
// section 6.1.4). Any other end of the QP, such as Abort, invalidates them.
func (qp *QP) Close() error {
	if qp.conn.Load() == nil {
		return endUnconnected(qp)
	}
	if n := qp.stream.Windows().Len(); n > 0 {
		return fmt.Errorf("iwarp: close queue pair: %w: %d of them", errtext.Clause(ErrWindowBound), n)
	}
	qp.drain()
	if stag.InBuffer() {
		qp.rnic.tasks.Start(func() { _ = qp.closeGracefully() })
		return qp.waitEnded(0)
	}
	return qp.closeGracefully()
}

// drain refuses new work, and makes the connection report when all work is done.
func (qp *QP) drain() {
	qp.stream.Refuse()
	qp.rq.Advance(postqueue.Refuses, nil)
	qp.conn.Load().Drain()
}

// closeGracefully is the rest of Close, after posting has been refused.
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

// endWithin ends a QP that accepts no more posts: gracefully, when its work is done. It
// returns when the QP has ended. If ctx ends first it aborts the QP with cause, and returns
// true without waiting for the end.
func (qp *QP) endWithin(ctx context.Context, cause error) (aborted bool) {
	if hasEnded(qp) { // whether ctx has, too, or not
		return false
	}
	select {
	case <-qp.done:
	case <-qp.conn.Load().Drained():
		qp.rnic.tasks.Start(qp.endSending) // TLS has something to send, which may have to wait
		select {
		case <-qp.done:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	if hasEnded(qp) {
		return false
	}
	qp.abort(cause)
	return true
}

// endSending ends our half of the stream. All work of the QP is done.
func (qp *QP) endSending() {
	conn := qp.conn.Load()
	if conn.Stage() >= qpconn.Closing {
		return
	}
	qp.rq.end(StatusFlushed)
	if !conn.ResumeStalled() { // else the peer learns by a Terminate that its message is lost
		qp.stream.Shut()
		conn.EndSending()
	}
}

// Terminate ends the QP with a Terminate message. It tells the peer that this side cannot
// continue: "local catastrophic error" (0/0/00), which refers to no message
// (draft-hilland-rddp-verbs section 6.2.2.3). All incomplete work is flushed. Terminate
// returns when the QP has ended; it waits for at most two seconds for a peer that does not end
// its half. A responder that has received nothing yet may not send, and only ends the
// connection. Only an established QP can be terminated; if the QP is ending or has ended,
// Terminate returns an error. See [QP.Close] about Buffers.
func (qp *QP) Terminate() error {
	if qp.conn.Load() == nil {
		return unconnected(qp)
	}
	if qp.State() != StateRTS || !qp.fail(transport.Faultf(transport.RDMAPLocalCatastrophic, "the application cannot continue")) {
		return qp.cause()
	}
	return qp.waitEnded(qpconn.PeerEndTime + abortTime)
}

// Abort ends the QP at once. It resets the connection without sending a Terminate, flushes all
// incomplete work, and invalidates the memory windows that are bound to the QP. If a method of
// a Buffer or a net.Conn does not return within five seconds, Abort returns an error that matches
// os.ErrDeadlineExceeded, and the QP ends when the method returns. If Abort is called from
// inside a method of a Buffer or a Flusher, it does not wait, and returns an error.
func (qp *QP) Abort() error {
	if qp.conn.Load() == nil {
		return endUnconnected(qp)
	}
	qp.abort(errAborted)
	return qp.waitEnded(abortTime)
}

func (qp *QP) abort(cause error) { qp.conn.Load().Abort(cause) }

// waitEnded waits for the end of a QP that is ending, for at most d.
func (qp *QP) waitEnded(d time.Duration) error { return endwait.Ended("the queue pair", qp.done, d) }

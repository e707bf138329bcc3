package iwarp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// How a QP ends:
//
//	fail        an error found here: a Terminate is sent, then linger
//	Terminated  the peer's Terminate: linger
//	linger      our half is ended with a FIN; what still comes is thrown away until the
//	            peer's FIN, for 2 s at most. Closing at once would answer unread input
//	            with a reset, and that destroys a Terminate that is still under way.
//	peerEnded   the peer's FIN
//	late        a message behind our own FIN: linger
//	lose        the connection is gone
//	die         both halves stop; the one that stops last calls finish
//	finish      everything that is left is flushed

// lingerTime bounds how long a QP waits for a Terminate to leave, and for the
// peer's FIN after it.
const lingerTime = 2 * time.Second

// readOnTime bounds how long a QP whose connection takes no more reads what had come.
const readOnTime = 500 * time.Millisecond

var (
	errNotConnected = errors.New("iwarp: the QP is not connected yet")
	errQPClosed     = fmt.Errorf("iwarp: queue pair closed: %w", net.ErrClosed)
	errAborted      = fmt.Errorf("iwarp: aborted: %w", net.ErrClosed)
	errCloseTimeout = fmt.Errorf("iwarp: close: %w", os.ErrDeadlineExceeded)
	errBadClose     = fmt.Errorf("iwarp: the peer sent a message after this side had ended the stream: %w", net.ErrClosed)
)

// record keeps the first cause of the end and moves on to state s. Whoever comes late, with
// what he saw before, moves nothing back: the states of the end are in their order.
func (qp *QP) record(s State, kind EventKind, cause error) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.finished {
		return
	}
	if qp.err == nil && cause != nil {
		qp.err = ended(cause)
	}
	if qp.kind == 0 {
		qp.kind = kind
	}
	if s > qp.State() {
		qp.state.Store(uint32(s))
	}
}

// fail ends the stream for an error that this side found: a Terminate tells the
// peer (RFC 5040 section 7.1). It reports false if the stream was ending already.
func (qp *QP) fail(cause error) bool {
	if !qp.hold() {
		return false
	}
	defer qp.release() // not before the cause is recorded
	tell := qp.stream.Terminate(cause)
	if !tell && !isBadTerminate(cause) {
		return false
	}
	te := faultError(cause)
	if te == nil {
		te = newTerminateError(transport.RDMAPStreamCatastrophic, false, cause)
	}
	qp.terminate(te, EventTerminated, recvStatus(cause))
	if !tell {
		qp.linger()
		return true
	}
	qp.bound(lingerTime)
	qp.kick()
	return true
}

// isBadTerminate reports whether cause is a Terminate of the peer that is in error
// itself. It ends the stream, but no Terminate is answered by one.
func isBadTerminate(cause error) bool {
	var seg *ddp.SegmentError
	return errors.As(cause, &seg) && isTerminate(seg.Header)
}

func isTerminate(segment []byte) bool {
	return len(segment) > 1 && rdmap.Opcode(segment[1]&0xf) == rdmap.OpTerminate
}

func isEmptyTagged(segment []byte) bool {
	return ddp.IsTagged(segment) && len(segment) == ddp.TaggedLen
}

// Terminated takes the peer's Terminate. It is for the stream's use.
func (e events) Terminated(t rdmap.Terminate) {
	qp := e.qp
	qp.terminate(newTerminateError(qp.meaning(&t), true, nil), EventTerminateReceived, StatusFlushed)
	qp.linger()
}

func (qp *QP) terminate(te *TerminateError, kind EventKind, first Status) {
	qp.mu.Lock()
	if qp.term == nil {
		qp.term = te
	}
	qp.mu.Unlock()
	qp.record(StateTerminate, kind, te)
	qp.rq.end(first)
}

// recvStatus is how the receive completes whose message was in error.
func recvStatus(cause error) Status {
	var seg *ddp.SegmentError
	if !errors.As(cause, &seg) || ddp.IsTagged(seg.Header) {
		return StatusFlushed
	}
	if h, err := ddp.ParseUntagged(seg.Header); err != nil || h.QN != rdmap.QNSend {
		return StatusFlushed
	}
	switch {
	case seg.Code() == transport.DDPTooLong:
		return StatusLocalLength
	case errors.Is(cause, stag.ErrInvalid):
		return StatusLocalAccess
	}
	return StatusFlushed
}

// receiveFailed takes an error of LLP.Receive.
func (qp *QP) receiveFailed(err error) {
	var f *transport.Fault
	if errors.As(err, &f) && f.Code != transport.MPAConnectionLost {
		qp.fail(err)
		return
	}
	qp.lose(err)
}

// peerEnded takes the peer's FIN. It may overtake the sender, who has handed a
// message to the network and not completed it yet: the sender judges when it is through.
func (qp *QP) peerEnded() {
	qp.peerGone.Store(true)
	if err := qp.sendErr.Load(); err != nil {
		qp.lose(*err)
		return
	}
	qp.bound(lingerTime)
	qp.kick()
}

// afterPeer ends a QP whose peer has ended its half. Work that is still outstanding
// can no longer be done (draft-hilland-rddp-verbs section 6.2.2.2).
func (qp *QP) afterPeer() {
	state := qp.State()
	if state == StateTerminate || state == StateError {
		return
	}
	if sq, irq := qp.stream.Idle(); state == StateRTS && (sq != 0 || irq != 0) {
		qp.fail(transport.Faultf(transport.RDMAPStreamCatastrophic,
			"the peer ended its half with %d work requests and %d RDMA Reads outstanding", sq, irq))
		return
	}
	qp.record(StateClosing, EventClosed, nil)
	_ = qp.llp.CloseSend()
	qp.die(nil)
}

// lose ends the QP because the connection is gone, unless that is this side's doing.
func (qp *QP) lose(err error) {
	if !qp.dead() {
		qp.record(StateError, EventConnectionLost, err)
	}
	qp.die(err)
}

// mayReadOn takes an error of LLP.Flush. What the peer said before the connection was
// lost may still be there to be read, a Terminate above all. So unless the end is under
// way the reader goes on to the end of it, which is near: the connection is gone for it,
// too.
func (qp *QP) mayReadOn(err error) bool {
	qp.sendErr.Store(&err)
	if s := qp.State(); qp.peerGone.Load() || qp.dead() || s == StateTerminate || s == StateError {
		return false
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.timer == nil && !qp.dying.Load() {
		qp.timer = time.AfterFunc(readOnTime, func() { qp.lose(err) })
	}
	return true
}

// linger ends our half and has the reader throw away what still comes.
func (qp *QP) linger() {
	if qp.rx.lingers.Swap(true) {
		return
	}
	qp.bound(lingerTime)
	if t := qp.Terminated(); !qp.closeSend() && t != nil && t.Remote {
		qp.die(nil) // nothing of ours is under way that this could destroy
		return
	}
	qp.rx.wake()
}

// closeSend ends our half. It reports false where the connection can only be ended as
// a whole.
func (qp *QP) closeSend() bool {
	return !errors.Is(qp.llp.CloseSend(), errors.ErrUnsupported)
}

// bound gives the end d to come by itself.
func (qp *QP) bound(d time.Duration) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.timer == nil && !qp.dying.Load() {
		qp.timer = time.AfterFunc(d, func() { qp.lose(os.ErrDeadlineExceeded) })
	}
}

func (qp *QP) dead() bool { return qp.dying.Load() }

// die stops both halves: gracefully if cause is nil or io.EOF, else with a reset.
func (qp *QP) die(cause error) {
	if qp.dying.Swap(true) {
		return
	}
	if isGraceful(cause) {
		_ = qp.llp.Close()
	} else {
		qp.llp.Abort(cause)
	}
	qp.rx.wake()
	if qp.tx.take() {
		qp.halfEnded()
	}
}

func isGraceful(cause error) bool { return cause == nil || errors.Is(cause, io.EOF) }

// halfEnded is called once by each half when it will not run again.
func (qp *QP) halfEnded() { qp.release() }

// hold keeps an established QP from finishing until release. It reports false if it
// has finished.
func (qp *QP) hold() bool {
	for n := qp.holds.Load(); n > 0; n = qp.holds.Load() {
		if qp.holds.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (qp *QP) release() {
	if qp.holds.Add(-1) == 0 {
		qp.finish()
	}
}

// finish completes what is left. Nothing is sent, received or placed any more.
func (qp *QP) finish() {
	qp.stream.End()
	qp.stream.Windows().Invalidate()
	qp.rq.end(StatusFlushed)
	qp.rq.drop()
	qp.sendRoom.freed.ring()
	qp.recvRoom.freed.ring()

	qp.mu.Lock()
	if qp.timer != nil {
		qp.timer.Stop()
	}
	e := Event{Kind: qp.kind, QP: qp, Terminate: qp.term, Err: qp.err}
	last := StateIdle
	if e.Err != nil {
		last = StateError
	}
	qp.finished = true
	qp.state.Store(uint32(last))
	qp.mu.Unlock()
	if e.Err != nil {
		qp.rnic.log.Info("queue pair ended", "peer", qp.RemoteAddr(), "how", e.Kind, "err", e.Err)
		if p := new(stag.PanicError); errors.As(e.Err, &p) {
			qp.rnic.log.Error("a Buffer panicked", "method", p.Method, "value", p.Value, "stack", string(p.Stack))
		}
	}
	qp.leave()
	qp.rnic.raise(e)
	close(qp.done)
}

// leave gives back what the QP has of the RNIC.
func (qp *QP) leave() {
	qp.rnic.mu.Lock()
	delete(qp.rnic.qps, qp)
	qp.rnic.mu.Unlock()
	qp.detach()
}

// checkOverflow ends a QP that lost a completion (RFC 5040 section 8.1.1 (10)).
func (qp *QP) checkOverflow() {
	if qp.overflow.Load() {
		qp.fail(transport.Faultf(transport.RDMAPStreamCatastrophic, "a completion queue overflowed"))
	}
}

// checkDrained tells Close when all work is done. Only the sender asks, after a
// flush: answers leave the stream's queue before they are out.
func (qp *QP) checkDrained() {
	if !qp.closing.Load() {
		return
	}
	if sq, irq := qp.stream.Idle(); sq != 0 || irq != 0 {
		return
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	select {
	case <-qp.drained:
	default:
		close(qp.drained)
	}
}

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
	if !qp.connected.Load() {
		return errNotConnected
	}
	if n := qp.stream.Windows().Len(); n > 0 {
		return fmt.Errorf("iwarp: close queue pair: %w: %d of them", clause{ErrWindowBound}, n)
	}
	qp.closing.Store(true)
	qp.kick()
	if stag.InBuffer() {
		qp.rnic.tasks.start(func() { _ = qp.closeGracefully() })
		return qp.waitEnded(0)
	}
	return qp.closeGracefully()
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
	case <-qp.drained:
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

// endSending sends the FIN of a QP whose work is done.
func (qp *QP) endSending() {
	qp.mu.Lock()
	first := qp.State() == StateRTS
	if first {
		qp.state.Store(uint32(StateClosing))
	}
	qp.mu.Unlock()
	if first {
		qp.rx.closed.Store(true)
		qp.rq.end(StatusFlushed)
		qp.rx.resume() // a message that waits for a receive has come too late
		if !qp.closeSend() {
			qp.record(StateClosing, EventClosed, nil)
			qp.die(nil)
		}
	}
}

// late takes a segment that comes after this side has ended the stream gracefully:
// the applications do not agree on its end (draft-hilland-rddp-verbs section 6.2.5). A
// Terminate is still heard, and an empty RDMA Write means nothing.
func (qp *QP) late(seq uint64, ulpdu []byte) error {
	switch {
	case qp.rx.lingers.Load():
		return nil
	case isEmptyTagged(ulpdu), isTerminate(ulpdu):
		return qp.stream.Segment(seq, ulpdu)
	}
	qp.record(StateError, EventBadClose, errBadClose)
	qp.linger()
	return nil
}

// Terminate ends the QP with a Terminate message that tells the peer that this side
// cannot go on: "local catastrophic error" (0/0/00), without naming a message
// (draft-hilland-rddp-verbs section 6.2.2.3). Everything that is not complete is
// flushed. It returns when the QP has ended; a peer that does not end its half keeps
// that waiting for two seconds at most. A responder to which nothing has come yet may
// not send, and only ends the connection. Only an established QP can be terminated: one
// that is ending or has ended answers with an error. For Buffers see [QP.Close].
func (qp *QP) Terminate() error {
	if !qp.connected.Load() {
		return errNotConnected
	}
	if qp.State() != StateRTS || !qp.fail(transport.Faultf(transport.RDMAPLocalCatastrophic, "the application cannot go on")) {
		return qp.cause()
	}
	return qp.waitEnded(lingerTime + abortTime)
}

// Abort ends the QP at once, with a reset of the connection and without a
// Terminate; everything that is not complete is flushed, and memory windows that are
// bound to the QP are invalidated. If a Buffer of this program does not return within a
// second Abort returns an error that matches os.ErrDeadlineExceeded, and the QP has ended
// when the Buffer returns. From inside a Buffer's method it does not wait, and returns an
// error.
func (qp *QP) Abort() error {
	if !qp.connected.Load() {
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
	qp.record(StateError, EventAborted, cause)
	qp.die(cause)
}

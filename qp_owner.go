package iwarp

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// owner is how the connection of a QP reports: a type of its own, so that these methods are
// not the user's.
type owner struct{ qp *QP }

// Received puts what a read has completed into the CQ.
func (o owner) Received() {
	o.qp.rq.push()
	o.qp.checkOverflow()
}

// Sent follows a batch, whose completions are in the CQ.
func (o owner) Sent() { o.qp.checkOverflow() }

// checkOverflow ends a QP that lost a completion (RFC 5040 section 8.1.1 (10)).
func (qp *QP) checkOverflow() {
	if qp.overflow.Load() {
		qp.fail(transport.Faultf(transport.RDMAPStreamCatastrophic, "a completion queue overflowed"))
	}
}

// HasReceive reports whether there is a receive for the next message.
func (o owner) HasReceive() bool { return o.qp.hasReceive() }

// fencedNotice is how long a responder's work waits before the log tells of it.
const fencedNotice = time.Second

// Notice tells the application of what waits.
func (o owner) Notice(n qpconn.Notice) {
	qp := o.qp
	switch n {
	case qpconn.NoticeFenced:
		qp.tellFenced()
	case qpconn.NoticeNoReceive:
		qp.rnic.log.Warn("a message waits for a receive", "peer", qp.RemoteAddr(), "for", qpconn.NoticeAfter, "limit", qp.cfg.RNRWait)
		qp.rnic.raise(Event{Kind: EventNoReceive, QP: qp, Err: errNoReceiveYet})
	case qpconn.NoticeReceiveOverdue:
		qp.rq.giveUp()
	}
}

var errNoReceiveYet = fmt.Errorf("%w for a message that has waited for %v", ErrNoReceive, qpconn.NoticeAfter)

// tellFenced logs, once, that work has waited for some time for the initiator's first message,
// before which a responder may not send (RFC 5044 section 7.1.2). Mostly that is under way.
func (qp *QP) tellFenced() {
	qp.mu.Lock()
	first := !qp.fenceTold
	qp.fenceTold = true
	qp.mu.Unlock()
	if !first {
		return
	}
	time.AfterFunc(fencedNotice, func() {
		if qp.State() == StateRTS && qp.isFenced() {
			qp.rnic.log.Warn("what was posted waits for the initiator's first message, before which a responder may not send",
				"peer", qp.RemoteAddr(), "for", fencedNotice, "option", "MPAOptions.EarlyResponderSend")
		}
	})
}

// Failed makes the error of a stream that this side has ended for cause.
func (o owner) Failed(cause error) error {
	te := faultError(cause)
	if te == nil {
		te = newTerminateError(transport.RDMAPStreamCatastrophic, false, cause)
	}
	o.qp.terminated(te, recvStatus(cause))
	return te
}

// terminated keeps the first Terminate. The first receive that is left will complete with
// first.
func (qp *QP) terminated(te *TerminateError, first Status) {
	qp.mu.Lock()
	if qp.term == nil {
		qp.term = te
	}
	qp.mu.Unlock()
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

// Flush completes the work requests that are left. Nothing is sent, received or placed any
// more.
func (o owner) Flush() {
	qp := o.qp
	qp.stream.Windows().Invalidate()
	qp.rq.end(StatusFlushed)
	qp.rq.drop()
	qp.sendSlots.Freed.Send()
	qp.recvSlots.Freed.Send()
}

// eventKinds are the events of the ways in which a connection ends.
var eventKinds = [...]EventKind{
	qpconn.Closed:            EventClosed,
	qpconn.Terminated:        EventTerminated,
	qpconn.TerminateReceived: EventTerminateReceived,
	qpconn.Lost:              EventConnectionLost,
	qpconn.Aborted:           EventAborted,
	qpconn.BadClose:          EventBadClose,
}

// Ended tells of the end, and gives back what the QP has of the RNIC.
func (o owner) Ended() {
	qp := o.qp
	reason, _ := qp.conn.Load().Cause()
	e := Event{Kind: eventKinds[reason], QP: qp, Terminate: qp.Terminated(), Err: qp.Err()}
	if e.Err != nil {
		qp.rnic.log.Info("queue pair ended", "peer", qp.RemoteAddr(), "how", e.Kind, "err", e.Err)
		if p := new(stag.PanicError); errors.As(e.Err, &p) {
			qp.rnic.log.Error("a Buffer panicked", "method", p.Method, "value", p.Value, "stack", string(p.Stack))
		}
	}
	qp.rnic.mu.Lock()
	delete(qp.rnic.qps, qp)
	qp.rnic.mu.Unlock()
	qp.detach()
	qp.rnic.raise(e)
	close(qp.done)
}

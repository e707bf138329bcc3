package iwarp

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/transport"
)

// owner implements qpconn.Owner for a QP. It is a separate type so that its methods are not
// part of the QP's API.
type owner struct{ qp *QP }

// Received puts the completions of a read into the CQ.
func (o owner) Received() {
	o.qp.rq.push()
	o.qp.window.Kick()
	o.qp.checkOverflow()
}

// Sent is called after a batch, whose completions are in the CQ.
func (o owner) Sent() { o.qp.checkOverflow() }

// checkOverflow ends a QP that has lost a completion (RFC 5040 section 8.1.1 (10)).
func (qp *QP) checkOverflow() {
	if qp.overflow.Load() {
		qp.fail(transport.Faultf(transport.RDMAPStreamCatastrophic, "a completion queue overflowed"))
	}
}

// HasReceive reports whether there is a receive for the next message, or will be none.
func (o owner) HasReceive() bool { return o.qp.hasReceive() }

// fencedNotice is how long the work of a responder waits before a warning is logged.
const fencedNotice = time.Second

// Notice reports to the application that something waits, unless the peer has not proved itself: see Ended.
func (o owner) Notice(n qpconn.Notice) {
	qp := o.qp
	if !qp.identity.Admitted() {
		return
	}
	switch n {
	case qpconn.NoticeFenced:
		qp.checkOverflow() // fenced work makes no batch: Sent is not called
		qp.tellFenced()
	case qpconn.NoticeNoReceive:
		qp.rnic.log.Warn("a message waits for a receive", logkey.Peer, fmt.Sprint(qp.RemoteAddr()), logkey.For, qpconn.NoticeAfter, logkey.Limit, qp.cfg.RNRWait)
		err := errNoReceiveYet
		if qp.cfg.SRQ != nil && qp.isCapped() {
			err = errSharedHeld
		}
		qp.rnic.raise(Event{Kind: EventNoReceive, QP: qp, Err: err})
	case qpconn.NoticeNoProgress:
		qp.rnic.raise(Event{Kind: EventNoProgress, QP: qp})
	}
}

// ReceiveOverdue makes the message that waits an error, unless it finds a receive.
func (o owner) ReceiveOverdue() { o.qp.rq.giveUp() }

var (
	errNoReceiveYet = fmt.Errorf("%w for a message that has waited for %v", ErrNoReceive, qpconn.NoticeAfter)
	errSharedHeld   = fmt.Errorf("%w: the QP holds QPConfig.RecvDepth receives of its SRQ, whose completions are to be polled", errNoReceiveYet)
)

// tellFenced logs a warning, once, if posted work has waited for fencedNotice for the
// initiator's first message, before which a responder may not send (RFC 5044 section 7.1.2).
// Usually that message arrives earlier.
func (qp *QP) tellFenced() {
	qp.mu.Lock()
	first := !qp.fenceTold
	qp.fenceTold = true
	qp.mu.Unlock()
	if !first {
		return
	}
	qp.conn.Load().After(fencedNotice, func() {
		if qp.State() == StateRTS && qp.isFenced() {
			qp.rnic.log.Warn("posted work waits for the initiator's first message, before which a responder may not send",
				logkey.Peer, fmt.Sprint(qp.RemoteAddr()), logkey.For, fencedNotice, logkey.Option, "MPAOptions.EarlyResponderSend")
		}
	})
}

// Failed returns the error of a stream that this side has ended because of cause.
func (o owner) Failed(cause error) error {
	te := faultError(cause)
	if te == nil {
		te = newTerminateError(transport.RDMAPStreamCatastrophic, false, cause)
	}
	o.qp.terminated(te, qpconn.ReceiveStatus(cause))
	return te
}

// terminated records the first Terminate. The first receive that remains will complete with
// the status first.
func (qp *QP) terminated(te *TerminateError, first Status) {
	qp.window.Leave()
	qp.mu.Lock()
	if qp.term == nil {
		qp.term = te
	}
	qp.mu.Unlock()
	qp.rq.end(first)
}

// Leaving records the TCP counters, which the kernel no longer has after the end of the connection.
func (o owner) Leaving() { o.qp.TCP() }

// Flush completes the remaining work requests. Nothing is sent, received or placed any more.
func (o owner) Flush() {
	qp := o.qp
	qp.window.Leave()
	qp.stream.Windows().Invalidate()
	qp.rq.end(StatusFlushed)
	qp.rq.drop()
	qp.sendSlots.Freed.Send()
	qp.recvSlots.Freed.Send()
}

// eventKinds maps each reason for the end of a connection to its event.
var eventKinds = [...]EventKind{
	qpconn.Closed:            EventClosed,
	qpconn.Terminated:        EventTerminated,
	qpconn.TerminateReceived: EventTerminateReceived,
	qpconn.Lost:              EventConnectionLost,
	qpconn.Aborted:           EventAborted,
	qpconn.BadClose:          EventBadClose,
}

// Ended reports the end of the QP, and releases what the QP has taken from the RNIC.
func (o owner) Ended() {
	qp := o.qp
	reason, _ := qp.conn.Load().Cause()
	e := Event{Kind: eventKinds[reason], QP: qp, Terminate: qp.Terminated(), Err: qp.Err()}
	known := qp.identity.Admitted() // else peers that have not proved themselves could fill the log, and displace other Events
	if e.Err != nil && known {
		qp.rnic.log.Info("queue pair ended", logkey.Peer, fmt.Sprint(qp.RemoteAddr()), logkey.How, e.Kind.String(), logkey.Err, e.Err)
		durable.LogPanic(qp.rnic.log, e.Err)
	}
	holds.Give(qp)
	qp.identity.End(known)
	qp.rnic.left(qp, counters.End(reason-qpconn.Closed), e, known)
}

package iwarp

import (
	"errors"
	"sync/atomic"

	"github.com/goiwarp/iwarp/transport"
)

// The way out:
//
//	PostSend --> send queue --+
//	                          +-- Fill --> batch --> Flush --> completions
//	answers to the peer ------+
//
// Whoever has something to send kicks. The first to come takes the send lock and
// sends what everybody has queued, one batch at a time, without ever waiting for
// the network; the others only leave word. A goroutine exists only while the network
// takes no more, or where nobody else is at hand for what is more than a share: see
// keeping.

// A sender is the send lock of a QP and who holds it.
type sender struct {
	qp   *QP
	task func() // wait in a goroutine of its own
	// calls counts the kicks since the lock was taken; 0: it is free. It is the lock itself:
	// whoever counts from 0 has it, and frees it only if nobody has counted since he looked.
	calls atomic.Int64
	keeping
}

// kick sees to it that what is queued now is sent. It never blocks on the network.
func (qp *QP) kick() {
	if qp.tx.take() {
		qp.tx.run(paceShare)
	}
}

// A pace is how far whoever has the send lock goes.
type pace uint8

const (
	paceShare  pace = iota // a share, and no waiting: others have called
	paceReader             // the same: the reader, that comes again before it parks
	paceAll                // in a goroutine of its own, which may wait
)

// run sends until nothing is left, with the lock held, then frees it.
func (s *sender) run(p pace) {
	for {
		seen := s.calls.Load()
		if !s.drain(p) {
			return
		}
		if s.calls.CompareAndSwap(seen, 0) {
			if s.qp.peerGone.Load() {
				s.qp.afterPeer()
			}
			return
		}
	}
}

// sendShare is how many batches whoever kicks sends himself: about 1 MiB with CRCs.
const sendShare = 2

// drain sends batches until nothing is left to send, and reports whether the caller
// still has the lock: it is given to a goroutine where the network must be waited
// for, kept for who comes back, and never freed once the connection has ended.
func (s *sender) drain(p pace) bool {
	qp := s.qp
	for share := sendShare; ; share-- {
		if qp.dead() {
			qp.halfEnded()
			return false
		}
		more, fillErr := qp.stream.Fill(qp.llp)
		err := qp.stream.Flush(qp.llp)
		waited := errors.Is(err, transport.ErrAgain)
		if waited {
			if p != paceAll {
				qp.rnic.tasks.launch(s.task)
				return false
			}
			err = qp.llp.Flush(true)
		}
		switch {
		case err == nil:
			qp.stream.Flushed()
			qp.afterFlush()
		case errors.Is(err, transport.ErrFenced):
			return qp.fenced()
		case qp.mayReadOn(err):
			qp.halfEnded()
			return false
		default:
			qp.lose(err)
			continue
		}
		switch {
		case fillErr != nil:
			qp.fail(fillErr)
		case !more && !qp.stream.Pending():
			return true
		case p == paceAll && !waited, share == 1:
			if s.pass(p) {
				return false
			}
		}
	}
}

// wait goes on where drain would have blocked, or has sent its share.
func (s *sender) wait() { s.run(paceAll) }

// fenced keeps the batch until the peer's first segment has come. A responder that
// must end before that may not even send a Terminate (RFC 5044 section 7.1.2).
func (qp *QP) fenced() bool {
	if qp.State() == StateTerminate {
		qp.die(nil)
		return true
	}
	qp.tellFenced()
	return true
}

// afterFlush looks at what a batch that has left means for the end of the QP.
func (qp *QP) afterFlush() {
	qp.checkOverflow()
	if _, sent := qp.stream.TerminateSent(); sent {
		qp.linger()
	}
	qp.checkDrained()
}

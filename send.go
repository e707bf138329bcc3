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
// takes no more, or while there are more batches than a share.

// A sender is the send lock of a QP and who holds it.
type sender struct {
	qp   *QP
	task func() // wait in a goroutine of its own
	// calls counts the kicks since the lock was taken; 0: it is free.
	calls atomic.Int64
}

// kick sees to it that what is queued now is sent. It never blocks on the network.
func (qp *QP) kick() {
	if qp.tx.calls.Add(1) == 1 {
		qp.tx.run(false)
	}
}

// run sends until nothing is left, with the lock held, then frees it. With wait it
// is in a goroutine of its own and may block.
func (s *sender) run(wait bool) {
	for {
		seen := s.calls.Load()
		if !s.drain(wait) {
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
// for, and never freed once the connection has ended.
func (s *sender) drain(wait bool) bool {
	qp := s.qp
	for share := sendShare; ; share-- {
		if qp.dead() {
			qp.halfEnded()
			return false
		}
		more, fillErr := qp.stream.Fill(qp.llp)
		err := qp.stream.Flush(qp.llp)
		if errors.Is(err, transport.ErrAgain) {
			if !wait {
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
		case !wait && share == 1:
			qp.rnic.tasks.launch(s.task)
			return false
		}
	}
}

// wait goes on where drain would have blocked, or has sent its share.
func (s *sender) wait() { s.run(true) }

// fenced keeps the batch until the peer's first segment has come. A responder that
// must end before that may not even send a Terminate (RFC 5044 section 7.1.2).
func (qp *QP) fenced() bool {
	if qp.State() == StateTerminate {
		qp.die(nil)
	}
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

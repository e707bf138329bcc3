package iwarp

import (
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/slots"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// events is how the stream of a QP reports: a type of its own, so that these
// methods are not the user's.
type events struct{ qp *QP }

// Complete ends one request of the send queue. The stream's lock is held.
func (e events) Complete(r *rdmap.Request, st rdmap.Status, code transport.Code) {
	qp := e.qp
	bits := wrBits(r.Bits)
	w, _ := r.Tag.(*helper)
	if w == nil && r.Tag != nil {
		return // see wakeSIW
	}
	var answer commit.Status
	if bits.op() == OpCommit {
		r.Len = 0
		if st == StatusSuccess {
			if answer = commit.StatusOf(r); answer != 0 {
				st = StatusRemoteOp
			}
		}
	}
	if w == nil && st == StatusSuccess && bits.flags()&Unsignaled != 0 {
		qp.sent.freed++
		return
	}
	wc := qp.sent.next()
	if w != nil {
		wc = &w.wc
	}
	wc.ID, wc.QP, wc.Op, wc.Status, wc.Len = r.ID, qp, bits.op(), st, uint32(r.Len)
	if code != 0 {
		wc.Vendor = uint32(code) << 16
	}
	wc.Old = r.Old
	wc.CommitStatus = uint32(answer)
	if w != nil {
		qp.sent.finish(w)
		return
	}
	if qp.sent.add() {
		qp.sent.push()
	}
}

// Completed puts what Complete has gathered into the CQ. The stream's lock is held, so
// that nobody comes between.
func (e events) Completed() {
	e.qp.sent.push()
	e.qp.drains.Send()
}

// Terminated takes the peer's Terminate.
func (e events) Terminated(t rdmap.Terminate) {
	te := newTerminateError(e.qp.meaning(&t), true, nil)
	e.qp.terminated(te, StatusFlushed)
	e.qp.conn.Load().PeerTerminated(te)
}

// Kick sends what an extension has answered.
func (e events) Kick() { e.qp.conn.Load().Post() }

// A completionBatch is the completions of one queue on their way into its CQ, which takes a
// lock: there, and not for each.
type completionBatch struct {
	qp    *QP
	cq    *CQ
	slots *slots.Count // of the queue
	freed int          // slots of it, of work that makes no completion in the CQ
	n     int
	wcs   [batchMax]WC
}

const batchMax = 4

// next is the completion that add adds, to be filled in; it is zero.
func (b *completionBatch) next() *WC { return &b.wcs[b.n] }

// add reports whether no more can be added before push.
func (b *completionBatch) add() (full bool) {
	b.n++
	return b.n == batchMax
}

// free gives back the slots of what made no completion. Whoever learns of what came
// later may count on them.
func (b *completionBatch) free() {
	if b.freed > 0 {
		b.slots.Release(b.freed)
		b.freed = 0
	}
}

// finish tells w, which has its completion and whose slot is free.
func (b *completionBatch) finish(w *helper) {
	b.freed++
	b.free()
	w.finish()
}

func (b *completionBatch) push() {
	b.free()
	if b.n == 0 {
		return
	}
	fit, sole := b.cq.push(b.wcs[:b.n]...)
	if !fit {
		b.qp.overflow.Store(true)
	}
	if b != &b.qp.received {
		sole.nudge()
	}
	clear(b.wcs[:b.n])
	b.n = 0
}

// wrBits is what the QP remembers of a work request in rdmap.Request.Bits.
type wrBits uint32

func makeBits(op Op, f Flags) wrBits { return wrBits(op)<<8 | wrBits(f) }

func (b wrBits) op() Op       { return Op(b >> 8) }
func (b wrBits) flags() Flags { return Flags(b) }

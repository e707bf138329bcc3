package iwarp

import (
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/slots"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// events handles the reports of the stream of a QP. It is a separate type so that its methods
// are not part of the QP's API.
type events struct{ qp *QP }

// Complete completes one request of the send queue. The stream's lock is held.
func (e events) Complete(r *rdmap.Request, st rdmap.Status, code transport.Code) {
	qp := e.qp
	bits := wrBits(r.Bits)
	w, _ := r.Tag.(*helper)
	if _, ok := r.Tag.(siwWrite); ok {
		return
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
	if st == StatusSuccess {
		qp.latencies.Observe(uint8(bits.op()), r.Posted)
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
	wc.Vendor, wc.Old, wc.CommitStatus = uint32(code)<<16, r.Old, uint32(answer)
	if w != nil {
		qp.sent.push() // what was posted before it
		qp.sent.finish(w)
		return
	}
	if qp.sent.add() {
		qp.sent.push()
	}
}

// Completed puts the completions that Complete has collected into the CQ. The stream's lock is
// held, so that no other completions come between them.
func (e events) Completed() {
	e.qp.sent.push()
	e.qp.drains.Send()
}

// Terminated handles the peer's Terminate.
func (e events) Terminated(t rdmap.Terminate) {
	e.qp.stream.BatchDone() // make Stats include everything that arrived before
	code, particulars := e.qp.meaning(&t), error(nil)
	if e.qp.identity.Refused(code, e.qp.stream.Stats()) {
		particulars = ErrAuth
	}
	te := newTerminateError(code, true, particulars)
	e.qp.terminated(te, StatusFlushed)
	e.qp.conn.Load().PeerTerminated(te)
}

// Kick sends the responses of an extension.
func (e events) Kick() { e.qp.conn.Load().Post() }

// A completionBatch collects completions of one queue before they are put into its CQ, so that
// the lock of the CQ is taken once for the batch.
type completionBatch struct {
	qp    *QP
	cq    *CQ
	slots *slots.Count // of the queue
	freed int          // slots to release, of work that makes no completion in the CQ
	n     int
	wcs   [batchMax]WC
}

const batchMax = 4

// next returns the next completion, which is zero, for the caller to fill in before it calls
// add.
func (b *completionBatch) next() *WC { return &b.wcs[b.n] }

// add adds the completion that next returned. It returns true if the batch is full, and must
// be pushed.
func (b *completionBatch) add() (full bool) {
	b.n++
	return b.n == batchMax
}

// free releases the slots of work that made no completion. A goroutine that sees a later
// completion may rely on these slots.
func (b *completionBatch) free() {
	if b.freed > 0 {
		b.slots.Release(b.freed)
		b.freed = 0
	}
}

// finish wakes w, whose completion is done and whose slot is free.
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
	if fit < b.n {
		b.qp.overflow.Store(true)
		b.slots.Release(b.n - fit) // no Poll does
	}
	if b != &b.qp.received {
		sole.nudge()
	}
	clear(b.wcs[:b.n])
	b.n = 0
}

// wrBits is the part of a work request that its completion needs; rdmap.Request.Bits holds it.
type wrBits uint32

func makeBits(op Op, f Flags) wrBits { return wrBits(op)<<8 | wrBits(f) }

func (b wrBits) op() Op       { return Op(b >> 8) }
func (b wrBits) flags() Flags { return Flags(b) }

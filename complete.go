package iwarp

import (
	"context"
	"sync/atomic"

	"github.com/goiwarp/iwarp/commit"
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
	w, _ := r.Tag.(*waiter)
	if w == nil && r.Tag != nil {
		return // a knock
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
	e.qp.drains.ring()
}

// Kick sends what an extension has answered.
func (e events) Kick() { e.qp.kick() }

// A gathering is the completions of one queue on their way into its CQ, which takes a
// lock: there, and not for each.
type gathering struct {
	cq    *CQ
	full  *atomic.Bool // QP.overflow
	room  *room        // of the queue
	freed int          // slots of it, of work that makes no completion in the CQ
	n     int
	wcs   [gatherMax]WC
}

const gatherMax = 4

// next is the completion that add adds, to be filled in; it is zero.
func (g *gathering) next() *WC { return &g.wcs[g.n] }

// add reports whether no more can be added before push.
func (g *gathering) add() (full bool) {
	g.n++
	return g.n == gatherMax
}

// free gives back the slots of what made no completion. Whoever learns of what came
// later may count on them.
func (g *gathering) free() {
	if g.freed > 0 {
		g.room.free(g.freed)
		g.freed = 0
	}
}

// finish tells w, which has its completion and whose slot is free.
func (g *gathering) finish(w *waiter) {
	g.freed++
	g.free()
	w.finish()
}

func (g *gathering) push() {
	g.free()
	if g.n == 0 {
		return
	}
	if !g.cq.push(g.wcs[:g.n]...) {
		g.full.Store(true)
	}
	clear(g.wcs[:g.n])
	g.n = 0
}

// wrBits is what the QP remembers of a work request in rdmap.Request.Bits.
type wrBits uint32

func makeBits(op Op, f Flags) wrBits { return wrBits(op)<<8 | wrBits(f) }

func (b wrBits) op() Op       { return Op(b >> 8) }
func (b wrBits) flags() Flags { return Flags(b) }

// A waiter is a blocking helper that waits for one completion of its own, which
// never shows up on a CQ.
type waiter struct {
	qp   *QP
	done chan struct{} // of capacity 1
	// It is done, or about to be. The holder of the right to receive looks at it behind
	// serving.asleep, and finish sets it before it looks at that; to look into the channel is
	// no atomic operation, and a processor may do it before.
	over atomic.Bool
	wc   WC
	// left is set, once and for good, when the helper has gone before the completion came.
	// It stands by itself: whether done comes before or after it, nothing else follows from it.
	left atomic.Bool
}

// waiter borrows a waiter. The spare ones are the RNIC's and not the package's, so
// that their channels stay within a testing/synctest bubble.
func (qp *QP) waiter() *waiter {
	w := qp.rnic.waiters.Get()
	if w == nil {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	w.qp = qp
	return w
}

func (w *waiter) granted() bool { return w.over.Load() }

func (w *waiter) finish() {
	qp := w.qp // w is its next user's once it is done
	w.over.Store(true)
	w.done <- struct{}{}
	qp.rx.nudge()
}

// wait returns the completion. If ctx ends first the work request goes on without
// anybody waiting, and w is left to it.
func (w *waiter) wait(ctx context.Context) (WC, error) {
	wc, ok := w.completion(ctx)
	if !ok {
		return WC{}, ctx.Err()
	}
	return wc, wc.Err()
}

// completion is wait for somebody who looks at the WC. It reports false if ctx ends first.
func (w *waiter) completion(ctx context.Context) (WC, bool) {
	select {
	case <-w.done:
	default:
		if !w.sleep(ctx) {
			w.left.Store(true)
			return WC{}, false
		}
	}
	wc := w.wc
	w.spare(wc.QP)
	return wc, true
}

// spare gives w back, for the next helper.
func (w *waiter) spare(qp *QP) {
	w.wc, w.qp = WC{}, nil
	w.over.Store(false)
	qp.rnic.waiters.Put(w)
}

// sleep returns when w is done; or if ctx ends first: false.
func (w *waiter) sleep(ctx context.Context) bool {
	qp := w.qp
	qp.tx.park()
	defer qp.tx.unpark()
	qp.rx.serve(ctx, w, qp.sendCQ.waitPlan())
	select {
	case <-w.done:
	case <-ctx.Done():
		if !w.granted() {
			return false
		}
		<-w.done
	}
	return true
}

package iwarp

import (
	"context"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/qpconn"
)

// A helper is a blocking helper that waits for one completion of its own, which never shows
// up on a CQ. It is a qpconn.Waiter.
type helper struct {
	qp    *QP
	token chan struct{} // of capacity 1
	done  atomic.Bool
	wc    WC // valid when done
	// left is set, once and for good, when the caller has gone before the completion came.
	left atomic.Bool
}

// helper borrows a helper. The spare ones are the RNIC's and not the package's, so that their
// channels stay within a testing/synctest bubble.
func (qp *QP) helper() *helper {
	w := qp.rnic.helpers.Get()
	if w == nil {
		w = &helper{token: make(chan struct{}, 1)}
	}
	w.qp = qp
	return w
}

func (w *helper) Done() bool           { return w.done.Load() }
func (w *helper) Enlist()              {} // finish sends a token in any case
func (w *helper) Delist()              {}
func (w *helper) Token() chan struct{} { return w.token }

// finish tells that wc is there.
func (w *helper) finish() {
	qp := w.qp // w is its next user's once it is done
	w.done.Store(true)
	select {
	case w.token <- struct{}{}:
	default:
	}
	if conn := qp.conn.Load(); conn != nil {
		conn.Nudge()
	}
}

// wait returns the completion. If ctx ends first the work request goes on without a caller
// that waits, and w is left to it.
func (w *helper) wait(ctx context.Context) (WC, error) {
	wc, ok := w.completion(ctx)
	if !ok {
		return WC{}, ctx.Err()
	}
	return wc, wc.Err()
}

// completion is wait for a caller that looks at the WC. It reports false if ctx ends first.
func (w *helper) completion(ctx context.Context) (WC, bool) {
	qp := w.qp
	if !w.Done() {
		qp.waitFor(ctx, w)
	}
	if !w.Done() {
		w.left.Store(true)
		return WC{}, false
	}
	wc := w.wc
	w.spare(qp)
	return wc, true
}

// waitFor returns when w is done or ctx has ended.
func (qp *QP) waitFor(ctx context.Context, w *helper) {
	if conn := qp.conn.Load(); conn != nil {
		conn.Wait(ctx, w, qp.sendCQ.plan())
		return
	}
	qpconn.Sleep(ctx, w) // for a receive of a QP that is not connected
}

// spare gives w back, for the next call.
func (w *helper) spare(qp *QP) {
	w.wc, w.qp = WC{}, nil
	w.done.Store(false)
	qp.rnic.helpers.Put(w)
}

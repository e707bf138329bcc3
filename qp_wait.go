package iwarp

import (
	"context"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/qpconn"
)

// A helper is a blocking call that waits for one completion of its own, which never appears on
// a CQ. It implements qpconn.Waiter.
type helper struct {
	qp    *QP
	token qpconn.Token
	done  atomic.Bool
	wc    WC // valid when done
	// left is set when the caller has returned before the completion. It is never cleared.
	left atomic.Bool
}

// helper returns a helper from the free list of the RNIC. The list belongs to the RNIC, and
// not to the package, so that the channels of its helpers stay within a testing/synctest
// bubble.
func (qp *QP) helper() *helper {
	w := qp.rnic.helpers.Get()
	if w == nil {
		w = &helper{token: qpconn.NewToken()}
	}
	w.qp = qp
	return w
}

func (w *helper) Done() bool          { return w.done.Load() }
func (w *helper) Enlist()             {} // finish always sends a token
func (w *helper) Delist()             {}
func (w *helper) Token() qpconn.Token { return w.token }

// finish reports that wc is valid.
func (w *helper) finish() {
	qp := w.qp // w may be reused once it is done
	w.done.Store(true)
	w.token.Tell()
	qp.conn.Load().Nudge()
}

// wait returns the completion. If ctx ends first the work request continues without a caller,
// and w is not reused.
func (w *helper) wait(ctx context.Context) (WC, error) {
	wc, ok := w.completion(ctx)
	if !ok {
		return WC{}, ctx.Err()
	}
	return wc, wc.Err()
}

// completion is like wait, for a caller that examines the WC. It returns false if ctx ends
// first.
func (w *helper) completion(ctx context.Context) (WC, bool) {
	qp := w.qp
	if !w.Done() {
		qp.conn.Load().Wait(ctx, w, qp.sendCQ.plan())
	}
	if !w.Done() {
		w.left.Store(true)
		return WC{}, false
	}
	wc := w.wc
	w.spare(qp)
	return wc, true
}

// spare returns w to the free list.
func (w *helper) spare(qp *QP) {
	w.wc, w.qp = WC{}, nil
	w.done.Store(false)
	qp.rnic.helpers.Put(w)
}

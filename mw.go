package iwarp

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// An MW is a memory window: an STag that lends a part of an MR to the peer of one QP
// for a while. An OpBind puts it in force; its own bounds and rights decide what the
// peer may do, whatever the MR grants. It is revoked by an OpLocalInvalidate, by the
// peer's Send with Invalidate, by Invalidate, or by the end of the QP, and can then be
// bound again, elsewhere, under a new key. It is what others call a window of type 2B.
//
// Binding and revoking register nothing and copy nothing. A window is no source or
// target of local work requests: those name the MR.
type MW struct {
	pd     *PD
	window *stag.Window
	latest atomic.Pointer[stag.Region] // posted last; it stands for all of the window's state

	closed sync.Once
}

// AllocMW makes a memory window, which grants nothing until it is bound. It counts
// against Limits.MaxMR.
func (pd *PD) AllocMW() (*MW, error) {
	if err := pd.takeSTag(); err != nil {
		return nil, err
	}
	w, err := pd.rnic.table.AllocateWindow(pd.id)
	if err != nil {
		pd.giveSTag()
		return nil, fmt.Errorf("iwarp: allocate a window: %w", clause{err})
	}
	mw := &MW{pd: pd, window: w}
	mw.latest.Store(w.Live())
	return mw, nil
}

// STag is the name by which the peer refers to the window: the one that it gets, or
// got, by the OpBind that was posted last. Each OpBind gives it a new one.
func (mw *MW) STag() stag.STag { return mw.latest.Load().STag() }

// Len is the size of the window in octets, by the OpBind that was posted last; 0
// before there was one.
func (mw *MW) Len() uint64 { return mw.latest.Load().Len() }

// Advertise returns what a peer needs to reach n octets of the window from off, by the
// OpBind that was posted last; a Send posted behind that may carry it. It returns the
// zero RemoteBuffer if they are not all within the window, or more than 2^32-1; see
// [MW.AdvertiseRange].
func (mw *MW) Advertise(off, n int) RemoteBuffer { return advertise(mw.latest.Load(), off, n) }

// AdvertiseRange is [MR.AdvertiseRange] for the window, by the OpBind that was posted last.
func (mw *MW) AdvertiseRange(off, n int) ([]RemoteBuffer, error) {
	return advertiseRange(mw.latest.Load(), off, n)
}

// Invalidate ends all access through the window, in whatever state it is, as
// [MR.Invalidate] does: once it returns nil, nothing is placed through the window any
// more. It waits for no peer. The window can be bound again; an OpBind that is still
// queued will fail.
func (mw *MW) Invalidate(ctx context.Context) error {
	return revokeError("invalidate", mw.STag(), endwait.Revoked(ctx, mw.window.Invalidate))
}

// Close is CloseContext with a context that ends after Config.CloseTimeout.
func (mw *MW) Close() error {
	return endwait.Within(mw.pd.rnic.cfg.CloseTimeout, mw.CloseContext)
}

// CloseContext waits until every OpBind and OpLocalInvalidate of the window that was posted
// has completed, invalidates the window and gives its STag back. If ctx ends first, the
// window may be closed again. Closing is idempotent.
func (mw *MW) CloseContext(ctx context.Context) error {
	if err := endwait.Revoked(ctx, mw.window.Close); err != nil {
		return revokeError("close", mw.STag(), err)
	}
	mw.closed.Do(mw.pd.giveSTag)
	return nil
}

// fillBind prepares a binding. What is wrong with the window or the region is told by
// the completion, for only then their states are known.
func (qp *QP) fillBind(r *rdmap.Request, wr *SendWR) error {
	r.Kind = rdmap.KindBind
	if wr.MW == nil || len(wr.Local) != 1 || wr.Local[0].MR == nil {
		return fmt.Errorf("iwarp: %v takes an MW and exactly one SGE", wr.Op)
	}
	s := wr.Local[0]
	switch {
	case wr.MW.pd.rnic != qp.rnic || s.MR.pd.rnic != qp.rnic:
		return fmt.Errorf("iwarp: %v: the MW or MR belongs to another RNIC", wr.Op)
	case s.Off < 0 || s.Len < 0:
		return fmt.Errorf("%w: %d octets at %d of %d", ErrBounds, s.Len, s.Off, s.MR.Len())
	}
	r.Spans = append(r.Spans, stag.Span{Region: s.MR.region(), Off: uint64(s.Off)})
	var err error
	r.Enable, err = wr.MW.window.PrepareKey(s.Len, wr.Access, wr.Remote.TO, wr.Key)
	return prepareError(wr.Op, err)
}

package iwarp

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// An MW is a memory window: an STag that gives the peer of one QP access to a part of an MR
// for some time. An OpBind binds it. Its own bounds and rights determine what the peer may do,
// whatever the MR grants. The window is invalidated by an OpLocalInvalidate, by the peer's
// Send with Invalidate, by Invalidate, or by the end of the QP. It can then be bound again, to
// different octets, with a new key. Other implementations call it a memory window of type 2B.
//
// Binding and invalidating register nothing and copy nothing. A window cannot be the source or
// target of local work requests: those name the MR.
type MW struct {
	pd     *PD
	window *stag.Window
	latest atomic.Pointer[stag.Region] // region of the request posted last; it holds all of the window's state

	closed sync.Once
}

// AllocMW allocates a memory window, which grants nothing until it is bound. It counts against
// Limits.MaxMR.
func (pd *PD) AllocMW() (*MW, error) {
	if err := pd.takeSTag(quota.Windows); err != nil {
		return nil, err
	}
	w, err := pd.rnic.table.AllocateWindow(pd.id)
	if err != nil {
		pd.giveSTag(quota.Windows)
		return nil, fmt.Errorf("iwarp: allocate a window: %w", errtext.Clause(err))
	}
	mw := &MW{pd: pd, window: w}
	mw.latest.Store(w.Live())
	return mw, nil
}

// STag returns the STag by which the peer refers to the window, as of the OpBind that was
// posted last. Each OpBind chooses a new one.
func (mw *MW) STag() stag.STag { return mw.latest.Load().STag() }

// Len returns the size of the window in octets, as of the OpBind that was posted last. It
// returns 0 if none was posted.
func (mw *MW) Len() uint64 { return mw.latest.Load().Len() }

// Advertise returns a RemoteBuffer for n octets of the window from off, as of the OpBind that
// was posted last. A Send posted after that OpBind may carry it. Advertise returns the zero
// RemoteBuffer if the octets are not all within the window, or if n exceeds 2^32-1; see
// [MW.AdvertiseRange].
func (mw *MW) Advertise(off, n int) RemoteBuffer { return advertise(mw.latest.Load(), off, n) }

// AdvertiseRange is like [MR.AdvertiseRange], for the window as of the OpBind that was posted
// last.
func (mw *MW) AdvertiseRange(off, n int) ([]RemoteBuffer, error) {
	return advertiseRange(mw.latest.Load(), off, n)
}

// Invalidate ends all access through the window, whatever its state, as [MR.Invalidate] does
// for a region: once it returns nil, nothing more is placed through the window. It does not
// wait for peers. The window can be bound again, but an OpBind that is still queued will fail.
func (mw *MW) Invalidate(ctx context.Context) error {
	return revokeError("invalidate", mw.STag(), endwait.Revoked(ctx, mw.window.Invalidate))
}

// Close is CloseContext with a context that ends after Config.CloseTimeout.
func (mw *MW) Close() error {
	return endwait.Within(mw.pd.rnic.cfg.CloseTimeout, mw.CloseContext)
}

// CloseContext ends all access through the window at once. It then waits until every posted
// OpBind and OpLocalInvalidate of the window has completed, and releases the STag. If ctx ends
// first, CloseContext may be called again. Closing is idempotent.
func (mw *MW) CloseContext(ctx context.Context) error {
	if err := endwait.Revoked(ctx, mw.window.Close); err != nil {
		return revokeError("close", mw.STag(), err)
	}
	mw.closed.Do(func() { mw.pd.giveSTag(quota.Windows) })
	return nil
}

// fillBind prepares a binding. The states of the window and the region are known only when the
// request is executed, so the completion reports errors that depend on them.
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
	r.Enable, err = wr.MW.window.Prepare(s.Len, wr.Access, wr.Remote.TO, wr.Key)
	return prepareError(wr.Op, err)
}

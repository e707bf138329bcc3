package iwarp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/attempt"
	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/stag"
)

// An MR is a registered region of memory, or a registered Buffer. One made by
// [PD.AllocMR] is what the OpRegister that was posted last makes of it.
type MR struct {
	pd     *PD
	blank  *stag.FastRegion            // of AllocMR, else nil
	latest atomic.Pointer[stag.Region] // posted last, if there is a blank; it stands for all of the MR's state that changes

	ask       func(context.Context, *MR) error // MROptions.Withdraw
	withdrawn attempt.Once

	closed sync.Once
}

func (mr *MR) region() *stag.Region { return mr.latest.Load() }

// STag is the name by which the peer refers to the region.
func (mr *MR) STag() stag.STag { return mr.region().STag() }

// Len is the size of the region in octets.
func (mr *MR) Len() uint64 { return mr.region().Len() }

// Slice names n octets from off for a local work request. It checks nothing; a
// post does.
func (mr *MR) Slice(off, n int) SGE { return SGE{MR: mr, Off: off, Len: n} }

// Advertise returns what a peer needs to reach n octets from off. It returns the
// zero RemoteBuffer if they are not all within the region, or more than 2^32-1: where that
// may be, call [MR.AdvertiseRange], which returns an error, and as many RemoteBuffers as
// it takes.
func (mr *MR) Advertise(off, n int) RemoteBuffer { return advertise(mr.region(), off, n) }

// AdvertiseRange returns what a peer needs to reach n octets from off, any number of them:
// RemoteBuffers of AdvertisePiece octets, one behind the other, of which the last may be
// shorter. There is one at least, of no length if n is 0. If the octets are not all within
// the region the error matches ErrBounds.
func (mr *MR) AdvertiseRange(off, n int) ([]RemoteBuffer, error) {
	return advertiseRange(mr.region(), off, n)
}

// Invalidate ends all access to the region: the STag is dead at once, and when
// Invalidate returns nil no placement is in flight and none can start (RFC 5040
// section 8.1.1 (6)). It waits for no peer. The region stays registered, without use,
// until Close; one of [PD.AllocMR] can be registered again, but an OpRegister that is
// still queued will fail.
//
// While memory windows are bound to the region Invalidate fails with ErrWindowBound,
// and changes nothing. From inside a method of a [Buffer] it does not wait, and fails if it
// would have to.
func (mr *MR) Invalidate(ctx context.Context) error {
	if err := mr.withdraw(ctx); err != nil {
		return revokeError("invalidate", mr.STag(), err)
	}
	return revokeError("invalidate", mr.STag(), endwait.Revoked(ctx, func(ctx context.Context) error {
		if mr.blank != nil {
			return mr.blank.Invalidate(ctx)
		}
		return mr.pd.rnic.table.Invalidate(ctx, mr.region())
	}))
}

// Close is CloseContext with a context that ends after Config.CloseTimeout.
func (mr *MR) Close() error {
	return endwait.Within(mr.pd.rnic.cfg.CloseTimeout, mr.CloseContext)
}

// CloseContext deregisters. No peer reaches the region any more from the moment of the
// call. Then it waits until every work request that was posted to a send queue and names
// the region has completed, the sink of an RDMA Read above all, and until no placement is in
// flight; a helper whose context has ended, but not its work request, is waited for so, too.
// When it returns nil the octets are the caller's alone and the STag is given back. Receives
// that are still posted are not waited for; a message that finds such a one ends its QP, or
// is thrown away if a [QP.Recv] was cancelled that had posted it.
//
// If ctx ends first the error matches that of ctx: no peer can reach the region, but the
// octets may still change and the region counts as registered until another Close has
// returned nil. To end the waiting, end the QPs of those work requests. Closing is
// idempotent. It fails with ErrWindowBound, and changes nothing, while memory windows are
// bound to the region. From inside a method of a [Buffer] it does not wait, and fails if it
// would have to.
func (mr *MR) CloseContext(ctx context.Context) error {
	if err := mr.withdraw(ctx); err != nil {
		return revokeError("close", mr.STag(), err)
	}
	err := endwait.Revoked(ctx, func(ctx context.Context) error {
		if mr.blank != nil {
			return mr.blank.Close(ctx)
		}
		return mr.pd.rnic.table.Close(ctx, mr.region())
	})
	if err != nil {
		return revokeError("close", mr.STag(), err)
	}
	mr.closed.Do(func() {
		mr.pd.durable.Remove(mr.region())
		mr.pd.giveSTag()
	})
	return nil
}

func revokeError(what string, s stag.STag, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stag.ErrBound):
		err = ErrWindowBound
	}
	return fmt.Errorf("iwarp: %s %v: %w", what, s, clause{err})
}

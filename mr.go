package iwarp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/attempt"
	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/stag"
)

// An MR is a registered region of memory, or a registered Buffer. The memory and the STag of
// an MR made by [PD.AllocMR] are those of the OpRegister that was posted last.
type MR struct {
	pd     *PD
	fast   *stag.FastRegion            // of AllocMR, else nil
	latest atomic.Pointer[stag.Region] // region of the request posted last, if fast is set; it holds all of the MR's state that changes

	ask       func(context.Context, *MR) error // MROptions.Withdraw
	withdrawn attempt.Once

	closed sync.Once
}

func (mr *MR) region() *stag.Region { return mr.latest.Load() }

// STag returns the STag by which the peer refers to the region.
func (mr *MR) STag() stag.STag { return mr.region().STag() }

// Len returns the size of the region in octets.
func (mr *MR) Len() uint64 { return mr.region().Len() }

// Slice returns an SGE for n octets from off, for a local work request. It does not check
// them; posting does.
func (mr *MR) Slice(off, n int) SGE { return SGE{MR: mr, Off: off, Len: n} }

// Advertise returns a RemoteBuffer for n octets from off, which a peer needs to access them.
// It returns the zero RemoteBuffer if the octets are not all within the region, or if n
// exceeds 2^32-1. [MR.AdvertiseRange] returns an error in the first case, and as many
// RemoteBuffers as necessary in the second.
func (mr *MR) Advertise(off, n int) RemoteBuffer { return advertise(mr.region(), off, n) }

// AdvertiseRange returns RemoteBuffers for n octets from off, for any n. They are contiguous,
// and each has AdvertisePiece octets, except the last, which may be shorter. There is at least
// one, of length 0 if n is 0. If the octets are not all within the region the error matches
// ErrBounds.
func (mr *MR) AdvertiseRange(off, n int) ([]RemoteBuffer, error) {
	return advertiseRange(mr.region(), off, n)
}

// Invalidate ends all access to the region. The STag becomes invalid at once, and when
// Invalidate returns nil no placement is in progress and none can start (RFC 5040 section
// 8.1.1 (6)). It does not wait for peers. The region stays registered, but unusable, until
// Close. A region made by [PD.AllocMR] can be registered again, but an OpRegister that is
// still queued will fail.
//
// While memory windows are bound to the region Invalidate fails with ErrWindowBound and
// changes nothing. If it is called from inside a method of a [Buffer] or a Flusher it does
// not wait, and fails if it would have to.
func (mr *MR) Invalidate(ctx context.Context) error {
	if err := mr.withdraw(ctx); err != nil {
		return revokeError("invalidate", mr.STag(), err)
	}
	return revokeError("invalidate", mr.STag(), endwait.Revoked(ctx, func(ctx context.Context) error {
		if mr.fast != nil {
			return mr.fast.Invalidate(ctx)
		}
		return mr.pd.rnic.table.Invalidate(ctx, mr.region())
	}))
}

// Close is CloseContext with a context that ends after Config.CloseTimeout.
func (mr *MR) Close() error {
	return endwait.Within(mr.pd.rnic.cfg.CloseTimeout, mr.CloseContext)
}

// CloseContext deregisters the region. Peers lose access at once. CloseContext then waits
// until every work request that was posted to a send queue and names the region has completed,
// in particular RDMA Reads into the region, and until no placement is in progress. This
// includes work requests of helpers whose context has ended. When it returns nil the memory
// belongs to the caller alone, and the STag is released. CloseContext does not wait for
// receives that are still posted. A message that finds such a receive ends its QP, or is
// discarded if the receive belongs to a [QP.Recv] that was cancelled.
//
// If ctx ends first the error matches that of ctx. No peer can then access the region, but the
// octets may still change, and the region counts as registered until another Close or
// CloseContext returns nil. To end the wait, end the QPs of the outstanding work requests.
// Closing is idempotent. While memory windows are bound to the region CloseContext fails with
// ErrWindowBound and changes nothing. If it is called from inside a method of a [Buffer] or a
// Flusher it does not wait, and fails if it would have to.
func (mr *MR) CloseContext(ctx context.Context) error {
	if err := mr.withdraw(ctx); err != nil {
		return revokeError("close", mr.STag(), err)
	}
	err := endwait.Revoked(ctx, func(ctx context.Context) error {
		if mr.fast != nil {
			return mr.fast.Close(ctx)
		}
		return mr.pd.rnic.table.Close(ctx, mr.region())
	})
	if err != nil {
		return revokeError("close", mr.STag(), err)
	}
	mr.closed.Do(func() {
		mr.pd.durable.Remove(mr.region())
		mr.pd.giveSTag(quota.Regions)
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
	return fmt.Errorf("iwarp: %s %v: %w", what, s, errtext.Clause(err))
}

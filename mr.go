package iwarp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/stag"
)

// An MR is a registered region of memory, or a registered Buffer. One made by
// [PD.AllocMR] is what the OpRegister that was posted last makes of it.
type MR struct {
	pd     *PD
	blank  *stag.Blank                 // of AllocMR, else nil
	latest atomic.Pointer[stag.Region] // posted last, if there is a blank

	mu     sync.Mutex
	closed bool
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
// zero RemoteBuffer if they are not all within the region, or more than 2^32-1.
func (mr *MR) Advertise(off, n int) RemoteBuffer { return advertise(mr.region(), off, n) }

func advertise(r *stag.Region, off, n int) RemoteBuffer {
	if !contains(r, off, n) || uint64(n) > math.MaxUint32 {
		return RemoteBuffer{}
	}
	return RemoteBuffer{STag: r.STag(), TO: r.BaseTO() + uint64(off), Len: uint32(n)}
}

// contains reports whether the n octets at off lie within the region.
func contains(r *stag.Region, off, n int) bool {
	size := r.Len()
	return off >= 0 && n >= 0 && uint64(off) <= size && uint64(n) <= size-uint64(off)
}

// Invalidate ends all access to the region: the STag is dead at once, and when
// Invalidate returns nil no placement is in flight and none can start (RFC 5040
// section 8.1.1 (6)). It waits for no peer. The region stays registered, without use,
// until Close; one of [PD.AllocMR] can be registered again, but an OpRegister that is
// still queued will fail.
//
// While memory windows are bound to the region Invalidate fails with ErrWindowBound,
// and changes nothing.
func (mr *MR) Invalidate(ctx context.Context) error {
	var err error
	if mr.blank != nil {
		err = mr.blank.Invalidate(ctx)
	} else {
		err = mr.pd.rnic.table.Invalidate(ctx, mr.region())
	}
	return revokeError("invalidate", mr.STag(), err)
}

// Close deregisters: it invalidates the region, waits until no work request that
// was already handed to the network refers to its octets, and gives the STag back.
// Posted work requests that have not started fail later. Close is idempotent. It fails
// with ErrWindowBound, and changes nothing, while memory windows are bound to the region.
func (mr *MR) Close() error {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	if mr.closed {
		return nil
	}
	var err error
	if mr.blank != nil {
		err = mr.blank.Close(context.Background())
	} else {
		err = mr.pd.rnic.table.Close(context.Background(), mr.region())
	}
	if err != nil {
		return revokeError("close", mr.STag(), err)
	}
	mr.closed = true
	mr.pd.durable.remove(mr.region())
	mr.pd.giveSTag()
	return nil
}

func revokeError(what string, s stag.STag, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stag.ErrBound):
		err = ErrWindowBound
	}
	return fmt.Errorf("iwarp: %s %v: %w", what, s, err)
}

package iwarp

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/goiwarp/iwarp/stag"
)

// An MR is a registered region of memory, or a registered Buffer.
type MR struct {
	pd     *PD
	region *stag.Region

	mu     sync.Mutex
	closed bool
}

// STag is the name by which the peer refers to the region.
func (mr *MR) STag() stag.STag { return mr.region.STag() }

// Len is the size of the region in octets.
func (mr *MR) Len() uint64 { return mr.region.Len() }

// Slice names n octets from off for a local work request. It checks nothing; a
// post does.
func (mr *MR) Slice(off, n int) SGE { return SGE{MR: mr, Off: off, Len: n} }

// Advertise returns what a peer needs to reach n octets from off. It returns the
// zero RemoteBuffer if they are not all within the region, or more than 2^32-1.
func (mr *MR) Advertise(off, n int) RemoteBuffer {
	if !mr.contains(off, n) || uint64(n) > math.MaxUint32 {
		return RemoteBuffer{}
	}
	return RemoteBuffer{STag: mr.STag(), TO: mr.region.BaseTO() + uint64(off), Len: uint32(n)}
}

func (mr *MR) contains(off, n int) bool {
	size := mr.region.Len()
	return off >= 0 && n >= 0 && uint64(off) <= size && uint64(n) <= size-uint64(off)
}

// Invalidate ends all access to the region: the STag is dead at once, and when
// Invalidate returns nil no placement is in flight and none can start (RFC 5040
// section 8.1.1 (6)). The region stays registered, without use, until Close.
func (mr *MR) Invalidate(ctx context.Context) error {
	if err := mr.pd.rnic.table.Invalidate(ctx, mr.region); err != nil {
		return fmt.Errorf("iwarp: invalidate %v: %w", mr.STag(), err)
	}
	return nil
}

// Close deregisters: it invalidates the region, waits until no work request that
// was already handed to the network refers to its octets, and gives the STag back.
// Posted work requests that have not started fail later. Close is idempotent.
func (mr *MR) Close() error {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	if mr.closed {
		return nil
	}
	if err := mr.pd.rnic.table.Close(context.Background(), mr.region); err != nil {
		return fmt.Errorf("iwarp: close %v: %w", mr.STag(), err)
	}
	mr.closed = true
	mr.pd.rnic.give(&mr.pd.rnic.used.mr)
	mr.pd.release()
	return nil
}

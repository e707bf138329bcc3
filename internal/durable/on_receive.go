package durable

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/stag"
)

// OnReceive is the regions of a PD that are flushed before a receive completes. The zero value
// has none.
type OnReceive struct {
	mu      lockorder.Mutex[lockorder.Leaf]
	regions atomic.Pointer[[]*stag.Region] // never changed in place; nil: none
}

// Add adds r.
func (l *OnReceive) Add(r *stag.Region) {
	l.change(func(old []*stag.Region) []*stag.Region { return append(slices.Clone(old), r) })
}

// Remove takes r back.
func (l *OnReceive) Remove(r *stag.Region) {
	if l.regions.Load() == nil {
		return
	}
	l.change(func(old []*stag.Region) []*stag.Region {
		return slices.DeleteFunc(slices.Clone(old), func(x *stag.Region) bool { return x == r })
	})
}

func (l *OnReceive) change(f func([]*stag.Region) []*stag.Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var old []*stag.Region
	if p := l.regions.Load(); p != nil {
		old = *p
	}
	if old = f(old); len(old) == 0 {
		l.regions.Store(nil)
		return
	}
	l.regions.Store(&old)
}

// Flush makes durable what the peer of a stream may have written. A region that is INVALID is no
// exception: the message that is to complete may have invalidated it, after Writes to it.
func (l *OnReceive) Flush(stream uint64) error {
	p := l.regions.Load()
	if p == nil {
		return nil
	}
	for _, r := range *p {
		if s := r.Scope().Stream; s != 0 && s != stream {
			continue
		}
		if err := flush(r); err != nil {
			return err
		}
	}
	return nil
}

// flush flushes a region, unless it is closed: the Flusher may be gone then. One whose Close only waits, and may fail, is not.
func flush(r *stag.Region) error {
	r.Hold() // before looking: Close waits from now on, or has been seen
	defer r.Release()
	if r.Closing() {
		if !r.PinClosing() {
			return nil
		}
		defer r.Unpin()
	}
	return r.Flusher().Flush(context.Background(), 0, int64(r.Len()))
}

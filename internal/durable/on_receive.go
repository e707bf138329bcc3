package durable

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/stag"
)

// OnReceive holds the regions of a PD that are flushed before a receive completes. The zero value
// holds none.
type OnReceive struct {
	count atomic.Int64
	mu    lockorder.Mutex[lockorder.Leaf]
	// The regions by stream; regions for all streams are at 0. A slice is never changed in place: a Flush may be
	// reading it.
	regions map[uint64][]*stag.Region
}

// Add adds r.
func (l *OnReceive) Add(r *stag.Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.regions == nil {
		l.regions = make(map[uint64][]*stag.Region)
	}
	s := r.Scope().Stream
	l.regions[s] = append(l.regions[s], r)
	l.count.Add(1)
}

// Remove removes r.
func (l *OnReceive) Remove(r *stag.Region) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := r.Scope().Stream
	old := l.regions[s]
	i := slices.Index(old, r)
	switch {
	case i < 0:
		return
	case len(old) == 1:
		delete(l.regions, s)
	default:
		l.regions[s] = slices.Delete(slices.Clone(old), i, i+1)
	}
	l.count.Add(-1)
}

// of returns the regions for all streams, and the regions for one stream.
func (l *OnReceive) of(stream uint64) [2][]*stag.Region {
	l.mu.Lock()
	defer l.mu.Unlock()
	return [...][]*stag.Region{l.regions[0], l.regions[stream]}
}

// Flush makes durable what the peer of a stream may have written. It includes INVALID regions: the
// message that is to complete may have invalidated a region after Writes to it.
func (l *OnReceive) Flush(stream uint64) error {
	if l.count.Load() == 0 {
		return nil
	}
	for _, regions := range l.of(stream) {
		for _, r := range regions {
			if err := flush(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush flushes a region, unless it is closed: its Flusher may be gone then. While its Close waits, and may fail, it is not closed.
func flush(r *stag.Region) error {
	r.Hold() // before the check: Close waits from now on, or the check sees it
	defer r.Release()
	if r.Closing() {
		if !r.PinClosing() {
			return nil
		}
		defer r.Unpin()
	}
	return r.Flusher().Flush(context.Background(), 0, int64(r.Len()))
}

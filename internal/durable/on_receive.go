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
	count atomic.Int64
	mu    lockorder.Mutex[lockorder.Leaf]
	// The regions of each stream, those of all streams at 0. What a slice has is never changed in place: a Flush may be
	// looking at it.
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

// Remove takes r back.
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

// of returns the regions of all streams, and those of one stream.
func (l *OnReceive) of(stream uint64) [2][]*stag.Region {
	l.mu.Lock()
	defer l.mu.Unlock()
	return [...][]*stag.Region{l.regions[0], l.regions[stream]}
}

// Flush makes durable what the peer of a stream may have written. A region that is INVALID is no
// exception: the message that is to complete may have invalidated it, after Writes to it.
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

// Package slots counts the work requests of a queue.
package slots

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// A Count is how many slots of a queue are in use. A slot is free again when the poster has got
// back its work request: when the completion was polled, and for work without one when it is
// done (draft-hilland-rddp-verbs section 8.2.1). So a CQ with as many entries as its queues have
// slots does not overflow.
type Count struct {
	// used rises under the lock of the queue only; that it falls meanwhile does no harm.
	used atomic.Int64
	// Freed is sent to those that want a slot.
	Freed Broadcast
	// stalled has a message that wants a slot. ResumeWhenFree sets it and then looks at used, while
	// Release lowers used and then looks at it.
	stalled atomic.Pointer[Staller]
}

// A Staller has a message that waits.
type Staller struct{ Resume func() }

// Used is how many slots are in use.
func (c *Count) Used() int { return int(c.used.Load()) }

// Reserve takes n of depth slots, or as many as there are. Calls do not overlap.
func (c *Count) Reserve(depth, n int) (reserved int) {
	reserved = min(n, depth-c.Used())
	c.used.Add(int64(reserved))
	return reserved
}

// Release frees n slots.
func (c *Count) Release(n int) {
	c.used.Add(int64(-n))
	c.Freed.Send()
	if c.stalled.Load() != nil {
		if s := c.stalled.Swap(nil); s != nil {
			s.Resume()
		}
	}
}

// ResumeWhenFree reports whether fewer than depth slots are in use. If not, the next Release
// resumes s.
func (c *Count) ResumeWhenFree(depth int, s *Staller) (free bool) {
	c.stalled.Store(s) // before looking: Release looks afterwards
	if c.Used() >= depth {
		return false
	}
	c.stalled.Store(nil)
	return true
}

// Wait calls post again and again while its error matches full.
func (c *Count) Wait(ctx context.Context, full error, post func() error) error {
	err := post()
	if !errors.Is(err, full) {
		return err
	}
	late := c.Freed.Wait(ctx, func() bool {
		err = post()
		return !errors.Is(err, full)
	})
	if late != nil {
		return fmt.Errorf("no slot of the queue has become free: %w", late)
	}
	return err
}

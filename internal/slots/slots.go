// Package slots counts the work requests of a queue.
package slots

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// A Count is the number of slots of a queue that are in use. A slot is freed when the poster gets
// its work request back: when the completion is polled, or, for work without a completion, when
// the work is done (draft-hilland-rddp-verbs section 8.2.1). So a CQ with as many entries as its
// queues have slots does not overflow.
type Count struct {
	// used rises only under the lock of the queue. It may fall at any time, which does no harm.
	used atomic.Int64
	// Freed is sent to the goroutines that wait for a slot.
	Freed Broadcast
	// stalled has a message that waits for a slot. ResumeWhenFree sets stalled and then reads used,
	// while Release lowers used and then reads stalled.
	stalled atomic.Pointer[Staller]
}

// A Staller resumes a message that waits for a slot.
type Staller struct{ Resume func() }

// Used returns how many slots are in use.
func (c *Count) Used() int { return int(c.used.Load()) }

// Reserve takes n of depth slots, or as many as are free. Calls must not overlap.
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
	c.stalled.Store(s) // before used is read: Release reads stalled afterwards
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

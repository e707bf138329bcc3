package iwarp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/qpconn"
)

// slots counts the work requests of a queue that their poster has not got back: a slot is
// free again when the completion was polled, and for work without one when it is done
// (draft-hilland-rddp-verbs section 8.2.1). So a CQ with as many entries as its queues have
// slots does not overflow.
type slots struct {
	// used rises under the lock of the queue only; that it falls meanwhile does no harm.
	used  atomic.Int64
	freed broadcast // to the blocking helpers that want a slot
	// stalled has a message that wants a slot: see QP.mayDraw, which sets it and then looks at
	// used, while release lowers used and then looks at it.
	stalled atomic.Pointer[qpconn.Conn]
}

// reserve takes n of depth slots, or as many as there are. Calls do not overlap.
func (s *slots) reserve(depth, n int) (reserved int) {
	reserved = min(n, depth-int(s.used.Load()))
	s.used.Add(int64(reserved))
	return reserved
}

func (s *slots) release(n int) {
	s.used.Add(int64(-n))
	s.freed.send()
	if s.stalled.Load() != nil {
		if c := s.stalled.Swap(nil); c != nil {
			c.Resume()
		}
	}
}

// whenFree calls post again and again until it finds a slot of its queue.
func (s *slots) whenFree(ctx context.Context, post func() error) error {
	for {
		err := post()
		if !errors.Is(err, ErrQueueFull) {
			return err
		}
		freed := s.freed.listen()
		err = post()
		if !errors.Is(err, ErrQueueFull) {
			s.freed.leave()
			return err
		}
		select {
		case <-freed:
			s.freed.leave()
		case <-ctx.Done():
			s.freed.leave()
			return fmt.Errorf("no slot of the queue has become free: %w", ctx.Err())
		}
	}
}

// slotsOf returns those of the queue that completions of op come from.
func (qp *QP) slotsOf(op Op) *slots {
	if op.received() {
		return &qp.recvSlots
	}
	return &qp.sendSlots
}

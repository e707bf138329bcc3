package iwarp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// A room counts the work requests of a queue that their poster has not got back: a
// slot is free again when the completion was polled, and for work without one when it
// is done (draft-hilland-rddp-verbs section 8.2.1). So a CQ with as many entries as
// its queues have slots does not overflow.
type room struct {
	// used rises under the lock of the queue only; that it falls meanwhile does no harm.
	used  atomic.Int64
	freed bell // for the blocking helpers that want a slot
	// stalled has a message that wants a slot: see QP.mayDraw, which sets it and then looks at
	// used, while free lowers used and then looks at it.
	stalled atomic.Pointer[receiver]
}

// take takes n of depth slots, or as many as there are. Calls do not overlap.
func (r *room) take(depth, n int) (taken int) {
	taken = min(n, depth-int(r.used.Load()))
	r.used.Add(int64(taken))
	return taken
}

func (r *room) free(n int) {
	r.used.Add(int64(-n))
	r.freed.ring()
	if r.stalled.Load() != nil {
		if x := r.stalled.Swap(nil); x != nil {
			x.resume()
		}
	}
}

// whenRoom calls post again and again until it finds room in its queue.
func (r *room) whenRoom(ctx context.Context, post func() error) error {
	for {
		err := post()
		if !errors.Is(err, ErrQueueFull) {
			return err
		}
		freed := r.freed.listen()
		err = post()
		if !errors.Is(err, ErrQueueFull) {
			r.freed.leave()
			return err
		}
		select {
		case <-freed:
			r.freed.leave()
		case <-ctx.Done():
			r.freed.leave()
			return fmt.Errorf("no slot of the queue has become free: %w", ctx.Err())
		}
	}
}

// roomOf is the room of the queue that completions of op come from.
func (qp *QP) roomOf(op Op) *room {
	if op.received() {
		return &qp.recvRoom
	}
	return &qp.sendRoom
}

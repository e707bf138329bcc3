package iwarp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A room counts the work requests of a queue that their poster has not got back: a
// slot is free again when the completion was polled, and for work without one when it
// is done (draft-hilland-rddp-verbs section 8.2.1). So a CQ with as many entries as
// its queues have slots does not overflow.
type room struct {
	used atomic.Int64

	waiting atomic.Int32 // blocking helpers that want a slot
	mu      sync.Mutex
	freed   chan struct{} // closed when a slot is free; nil while nobody waits
}

// take takes n of depth slots, or as many as there are. Calls do not overlap.
func (r *room) take(depth, n int) (taken int) {
	taken = min(n, depth-int(r.used.Load()))
	r.used.Add(int64(taken))
	return taken
}

func (r *room) free(n int) {
	r.used.Add(int64(-n))
	r.wake()
}

// wake makes those who wait try again.
func (r *room) wake() {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// enter announces a waiter; the caller tries again, then selects on the channel, and
// calls leave.
func (r *room) enter() <-chan struct{} {
	r.waiting.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed == nil {
		r.freed = make(chan struct{})
	}
	return r.freed
}

func (r *room) leave() { r.waiting.Add(-1) }

// whenRoom calls post again and again until it finds room in its queue.
func (r *room) whenRoom(ctx context.Context, post func() error) error {
	for {
		err := post()
		if !errors.Is(err, ErrQueueFull) {
			return err
		}
		freed := r.enter()
		err = post()
		if !errors.Is(err, ErrQueueFull) {
			r.leave()
			return err
		}
		select {
		case <-freed:
			r.leave()
		case <-ctx.Done():
			r.leave()
			return ctx.Err()
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

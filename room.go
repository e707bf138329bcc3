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

// take takes one of depth slots, if there is one. Calls do not overlap.
func (r *room) take(depth int) bool {
	if r.used.Load() >= int64(depth) {
		return false
	}
	r.used.Add(1)
	return true
}

func (r *room) free() {
	r.used.Add(-1)
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

// polled gives back the slot of a completion that was polled.
func (qp *QP) polled(op Op) {
	if op == OpRecv {
		qp.recvRoom.free()
	} else {
		qp.sendRoom.free()
	}
}

package slots

import (
	"context"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Broadcast wakes all goroutines that listen for it. Sending it costs one load while no
// goroutine listens.
type Broadcast struct {
	// A listener counts itself and then checks whether it must wait. The sender changes what the
	// listener checks, and then reads the count. So at least one of them sees the other.
	listeners atomic.Int32
	mu        lockorder.Mutex[lockorder.Leaf]
	sent      chan struct{} // closed by the next send; nil while no goroutine listens
}

// Send wakes all goroutines that listen.
func (b *Broadcast) Send() {
	if b.listeners.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent != nil {
		close(b.sent)
		b.sent = nil
	}
}

// Wait waits until done reports true, and calls it again whenever the Broadcast is sent. If ctx ends
// first, Wait returns its error.
func (b *Broadcast) Wait(ctx context.Context, done func() bool) error {
	b.listeners.Add(1)
	defer b.listeners.Add(-1)
	for {
		sent := b.next() // before the call of done: a later change is sent
		if done() {
			return nil
		}
		select {
		case <-sent:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next returns the channel that the next send closes.
func (b *Broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent == nil {
		b.sent = make(chan struct{})
	}
	return b.sent
}

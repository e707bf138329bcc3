package slots

import (
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Broadcast wakes all goroutines that listen for it. To send it costs one load while none
// does.
type Broadcast struct {
	// A listener counts itself and then looks whether it need wait; the sender has changed what
	// the listener looks at, and then looks at the count. So one of them sees the other.
	listeners atomic.Int32
	mu        lockorder.Mutex[lockorder.Leaf]
	sent      chan struct{} // closed by the next send; nil while no goroutine listens
}

// Send wakes them.
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

// Listen announces a listener; the caller looks again whether it need wait at all,
// then selects on the channel, and calls Leave.
func (b *Broadcast) Listen() <-chan struct{} {
	b.listeners.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent == nil {
		b.sent = make(chan struct{})
	}
	return b.sent
}

// Leave ends what Listen began.
func (b *Broadcast) Leave() { b.listeners.Add(-1) }

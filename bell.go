package iwarp

import (
	"sync"
	"sync/atomic"
)

// A bell wakes everybody who listens for it. To ring it costs one load while nobody
// does.
type bell struct {
	// A listener counts itself and then looks whether it need wait; who rings has changed what
	// it looks at, and then looks at the count. So one of them sees the other.
	listeners atomic.Int32
	mu        sync.Mutex
	rung      chan struct{} // closed by the next ring; nil while nobody listens
}

func (b *bell) ring() {
	if b.listeners.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// listen announces a listener; the caller looks again whether it need wait at all,
// then selects on the channel, and calls leave.
func (b *bell) listen() <-chan struct{} {
	b.listeners.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) leave() { b.listeners.Add(-1) }

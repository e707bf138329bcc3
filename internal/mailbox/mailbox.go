// Package mailbox provides a channel whose senders never wait.
package mailbox

import (
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Box is a channel that, when it is full, drops and counts further values. Its mutex is a leaf of
// the lock order: streams report with their locks held.
type Box[T any] struct {
	dropped atomic.Uint64
	ch      <-chan T

	mu lockorder.Mutex[lockorder.Leaf]
	in chan<- T // the other end of ch; nil: closed
}

// New returns a Box that holds n values.
func New[T any](n int) *Box[T] {
	ch := make(chan T, n)
	return &Box[T]{ch: ch, in: ch}
}

// Put puts v into the Box, if it has room and is not closed.
func (b *Box[T]) Put(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.in <- v: // a nil channel takes nothing
	default:
		b.dropped.Add(1)
	}
}

// Dropped returns how many values found the Box full or closed.
func (b *Box[T]) Dropped() uint64 { return b.dropped.Load() }

// Channel returns the channel.
func (b *Box[T]) Channel() <-chan T { return b.ch }

// Close closes the channel. The values in it can still be read.
func (b *Box[T]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.in)
	b.in = nil
}

// Package freelist lends out objects that are used over and over.
//
// A sync.Pool by itself forgets what it holds at every collection, and then allocates
// anew, for each processor on which something is given back: the object, and what the pool
// needs to keep it. Where an operation borrows and gives back a few objects, those that are
// always the same stay here.
package freelist

import (
	"sync"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A List is the idle objects of one kind. It is safe for concurrent use. Its fields are
// set before.
type List[T any] struct {
	// Retain is how many idle objects stay for good. There may be more, as long as the
	// garbage collector lets them.
	Retain int
	// New makes one where none is idle. nil: Get returns nil.
	New func() *T

	mu   lockorder.Mutex[lockorder.Leaf]
	idle []*T // the last one was used last, and is in a cache
	more sync.Pool
}

// Get takes an object. What it holds is what its last user left.
func (l *List[T]) Get() *T {
	if x := l.pop(); x != nil {
		return x
	}
	if x, ok := l.more.Get().(*T); ok {
		return x
	}
	if l.New == nil {
		return nil
	}
	return l.New()
}

// Put gives an object back.
func (l *List[T]) Put(x *T) {
	if !l.push(x) {
		l.more.Put(x)
	}
}

// pop takes the object that was used last. It does not wait for the lock: the goroutine that
// holds it may have lost its processor, and Get has another way.
func (l *List[T]) pop() *T {
	if !l.mu.TryLock() {
		return nil
	}
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	x := l.idle[n-1]
	l.idle[n-1] = nil
	l.idle = l.idle[:n-1]
	return x
}

// push reports false if enough are kept already.
func (l *List[T]) push(x *T) bool {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	if l.idle == nil {
		l.idle = make([]*T, 0, l.Retain)
	}
	if len(l.idle) == l.Retain {
		return false
	}
	l.idle = append(l.idle, x)
	return true
}

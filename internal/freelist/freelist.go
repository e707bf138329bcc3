// Package freelist lends out objects that are used repeatedly.
//
// A sync.Pool alone drops its objects at every collection. Then, for each processor on which
// an object is given back, it allocates both the object and the memory that the pool needs to
// keep it. A List keeps a few objects permanently, for operations that borrow a few and give
// them back.
package freelist

import (
	"sync"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A List holds the idle objects of one kind. It is safe for concurrent use. Its fields must be
// set before it is used.
type List[T any] struct {
	// Retain is how many idle objects stay permanently. There may be more, until the garbage
	// collector frees them.
	Retain int
	// New makes an object if none is idle. nil: Get returns nil.
	New func() *T

	mu   lockorder.Mutex[lockorder.Leaf]
	idle []*T // the last one was used most recently, and is in a cache
	more sync.Pool
}

// Get takes an object. The object holds what its last user left.
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

// pop takes the object that was used most recently. It does not wait for the lock: the goroutine
// that holds the lock may have lost its processor, and Get has an alternative.
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

// push keeps x. It reports false if enough objects are kept already.
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

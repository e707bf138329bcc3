// Package eldest keeps unfinished operations in the order in which they began, so
// that the oldest can be given up if there are too many.
package eldest

import (
	"container/list"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A List holds unfinished operations. The zero value is empty. It is safe for concurrent use.
type List struct {
	mu    lockorder.Mutex[lockorder.Leaf]
	items list.List // of func() that gives up an operation; the oldest first
}

// Add adds an operation that has just begun. giveUp is called at most once, with the List locked:
// it must not block, and must not use the List. done removes the operation. Once done has returned,
// the operation either was given up or will not be. done may be called again.
func (l *List) Add(giveUp func()) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.items.PushBack(giveUp)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.items.Remove(e) // does nothing if e was removed
	}
}

// GiveUp gives up the oldest operation. It reports false if there is none.
func (l *List) GiveUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.items.Front()
	if e == nil {
		return false
	}
	l.items.Remove(e).(func())()
	return true
}

// Len returns the number of unfinished operations.
func (l *List) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items.Len()
}

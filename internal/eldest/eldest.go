// Package eldest keeps what has been begun and is not finished in the order of its
// beginning, so that the oldest can be given up where there is too much of it.
package eldest

import (
	"container/list"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A List is what is under way. The zero value is empty. It is safe for concurrent use.
type List struct {
	mu    lockorder.Mutex[lockorder.Leaf]
	items list.List // of func(): how each is given up; the oldest first
}

// Add enters what has just begun. giveUp is called at most once. It must not block, and must not
// use the List, which is locked: when done, which takes it out, has returned, it either was given
// up, or will not be. done may be called again.
func (l *List) Add(giveUp func()) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.items.PushBack(giveUp)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.items.Remove(e) // does nothing if it has been removed
	}
}

// GiveUp gives up the oldest. It reports false if there is none.
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

// Len is how many are under way.
func (l *List) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items.Len()
}

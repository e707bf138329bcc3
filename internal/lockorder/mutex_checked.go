//go:build lockorder

package lockorder

import (
	"sync"
	"unsafe"
)

// A Mutex is a sync.Mutex of rank R that panics if it is locked out of order. The zero value is
// unlocked.
type Mutex[R Rank] struct{ mu sync.Mutex }

// Lock locks m. It panics if the goroutine holds a mutex under which m must not be locked.
func (m *Mutex[R]) Lock() {
	var rank R
	g := goroutine()
	inOrder(g, rank)
	m.mu.Lock()
	locked(g, unsafe.Pointer(m), rank)
}

// TryLock is like sync.Mutex.TryLock. It never waits, so it may be called in any order.
func (m *Mutex[R]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	var rank R
	locked(goroutine(), unsafe.Pointer(m), rank)
	return true
}

// Unlock unlocks m.
func (m *Mutex[R]) Unlock() {
	unlocked(unsafe.Pointer(m))
	m.mu.Unlock()
}

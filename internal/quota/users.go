package quota

import "github.com/goiwarp/iwarp/internal/lockorder"

// Users counts the users of an object that cannot be closed while it has any. The zero value is
// open and has none. R is the rank of its mutex, under which nothing is locked.
type Users[R lockorder.Rank] struct {
	mu     lockorder.Mutex[R]
	n      int
	closed bool
}

// Add adds one. It reports false, and adds none, if the object is closed.
func (u *Users[R]) Add() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.n++
	return true
}

// Remove takes one away.
func (u *Users[R]) Remove() {
	u.mu.Lock()
	u.n--
	u.mu.Unlock()
}

// Close closes the object, unless it has users, whose number it returns. It reports whether it has
// closed it: once.
func (u *Users[R]) Close() (closed bool, users int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.n > 0 {
		return false, u.n
	}
	u.closed = true
	return true, 0
}

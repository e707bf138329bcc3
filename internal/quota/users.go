package quota

import "github.com/goiwarp/iwarp/internal/lockorder"

// Users counts the users of an object that cannot be closed while it has any. The zero value is
// open and has no users. R is the rank of its mutex, under which nothing is locked.
type Users[R lockorder.Rank] struct {
	mu     lockorder.Mutex[R]
	n      int
	closed bool
}

// Add adds a user. If the object is closed, it adds none and reports false.
func (u *Users[R]) Add() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.n++
	return true
}

// Remove removes a user.
func (u *Users[R]) Remove() {
	u.mu.Lock()
	u.n--
	u.mu.Unlock()
}

// Close closes the object, unless it has users, whose number it returns. closed is true for the
// call that closes it.
func (u *Users[R]) Close() (closed bool, users int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.n > 0 {
		return false, u.n
	}
	u.closed = true
	return true, 0
}

package quota

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Kind is a kind of user.
type Kind uint8

// The kinds.
const (
	Regions Kind = iota
	Windows
	SharedReceiveQueues
	QueuePairs
)

var kinds = [...]string{"regions", "windows", "shared receive queues", "queue pairs"}

// Users counts the users of an object that cannot be closed while it has any. The zero value is
// open and has no users. R is the rank of its mutex, under which nothing is locked.
type Users[R lockorder.Rank] struct {
	mu     lockorder.Mutex[R]
	n      [len(kinds)]int
	closed bool
}

// Add adds a user. If the object is closed, it adds none and reports false.
func (u *Users[R]) Add(k Kind) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.n[k]++
	return true
}

// Remove removes a user.
func (u *Users[R]) Remove(k Kind) {
	u.mu.Lock()
	u.n[k]--
	u.mu.Unlock()
}

// Close closes the object, unless it has users: then users says how many of each kind. closed is true for the
// call that closes it.
func (u *Users[R]) Close() (closed bool, users string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if users := u.list(); users != "" || u.closed {
		return false, users
	}
	u.closed = true
	return true, ""
}

// list returns the number of users of each kind. mu is held.
func (u *Users[R]) list() string {
	var list []string
	for k, n := range u.n {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, kinds[k]))
		}
	}
	return strings.Join(list, ", ")
}

// Package quota counts what there may be only so many of.
package quota

import "github.com/goiwarp/iwarp/internal/lockorder"

// A Count is how many of a resource are in use. The zero value is none.
type Count struct {
	mu lockorder.Mutex[lockorder.Leaf]
	n  int
}

// Take adds one. It reports false, and adds none, if there are limit of them.
func (c *Count) Take(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= limit {
		return false
	}
	c.n++
	return true
}

// Give takes one away.
func (c *Count) Give() {
	c.mu.Lock()
	c.n--
	c.mu.Unlock()
}

// InUse is how many there are.
func (c *Count) InUse() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

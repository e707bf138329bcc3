// Package quota counts resources whose number is limited.
package quota

import "github.com/goiwarp/iwarp/internal/lockorder"

// A Count is the number of units of a resource that are in use. The zero value is none.
type Count struct {
	mu lockorder.Mutex[lockorder.Leaf]
	n  int
}

// Take adds one. If limit are in use already, it adds none and reports false.
func (c *Count) Take(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= limit {
		return false
	}
	c.n++
	return true
}

// Give subtracts one.
func (c *Count) Give() {
	c.mu.Lock()
	c.n--
	c.mu.Unlock()
}

// InUse returns how many are in use.
func (c *Count) InUse() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

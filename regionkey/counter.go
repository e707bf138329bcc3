package regionkey

import (
	"errors"
	"sync/atomic"
)

// counterEnd is the number at which a connection ends.
const counterEnd = 1 << 48

// ErrExhausted is the error of a connection that has sealed too often. The caller must close the connection.
var ErrExhausted = errors.New("regionkey: the numbers of the connection are used up")

// A Counter numbers everything that one side of a connection seals, across all keys. The zero value
// begins with 0. It must not be copied, nor reset while the connection exists.
type Counter struct{ next atomic.Uint64 }

// Next returns a number that it has not returned before.
func (c *Counter) Next() (uint64, error) {
	n := c.next.Add(1) - 1
	if n >= counterEnd {
		return 0, ErrExhausted
	}
	return n, nil
}

// Skip skips the next n numbers, or all remaining ones if there are fewer. Nothing is sealed with
// them.
func (c *Counter) Skip(n uint64) {
	for {
		at := c.next.Load()
		if at >= counterEnd || c.next.CompareAndSwap(at, at+min(n, counterEnd-at)) {
			return
		}
	}
}

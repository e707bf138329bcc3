// Package attempt provides a call that is repeated until it succeeds, and never afterwards.
package attempt

import "github.com/goiwarp/iwarp/internal/lockorder"

// A Once is a call that may fail. The zero value represents a call that has not been made.
type Once struct {
	mu    lockorder.Mutex[lockorder.Leaf]
	state state
}

type state uint8

const (
	idle state = iota
	underWay
	done
)

// Do calls f, unless a previous call has succeeded. If another call is running, which may be the
// caller's own, Do does not wait for it, but returns busy.
func (o *Once) Do(busy error, f func() error) error {
	o.mu.Lock()
	was := o.state
	if was == idle {
		o.state = underWay
	}
	o.mu.Unlock()
	switch was {
	case underWay:
		return busy
	case done:
		return nil
	case idle:
	}
	after := idle
	defer func() { // also if it panics
		o.mu.Lock()
		o.state = after
		o.mu.Unlock()
	}()
	if err := f(); err != nil {
		return err
	}
	after = done
	return nil
}

package rpcrdma

import (
	"os"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/closed"
)

// A deadline is a deadline of a net.Conn. It may change while a goroutine waits for it.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{} // closed when it has passed
}

// wait returns a channel that is closed when the deadline passes.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel()
}

// channel is like wait. mu is held.
func (d *deadline) channel() chan struct{} {
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	return d.passed
}

// set changes the deadline; zero: there is none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.channel() // the function runs, or has run
	}
	d.timer = nil
	passed := closed.Is(d.channel())
	if t.IsZero() || time.Until(t) > 0 {
		if passed {
			d.passed = make(chan struct{})
		}
		if !t.IsZero() {
			c := d.passed
			d.timer = time.AfterFunc(time.Until(t), func() { close(c) })
		}
		return
	}
	if !passed {
		close(d.passed)
	}
}

// err is the error of a deadline that has passed.
func (d *deadline) err() error {
	if closed.Is(d.wait()) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

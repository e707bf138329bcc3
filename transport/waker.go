package transport

import (
	"errors"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// longAgo is a read deadline that has passed on every clock.
var longAgo = time.Unix(1, 0)

// A waker interrupts a read that is parked in the runtime's poller. The only way
// to do so without closing the connection is a read deadline in the past, and the
// reader must take it away again before the next read: both happen under
// the mutex, so that neither can overtake the other.
type waker struct {
	conn interface{ SetReadDeadline(time.Time) error }

	mu     lockorder.Mutex[lockorder.Leaf]
	parked bool // a reader is parked, or on its way
	woken  bool // wake was called and no read has reported it yet
	passed bool // the deadline in the past is set
}

// park announces that the reader is about to park. False: it must not, because
// wake came first; the reader reports ErrWoken.
func (w *waker) park() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken && !w.passed {
		w.woken = false
		return false
	}
	w.parked = true
	return true
}

// unpark ends what park began. It takes err, the outcome of the read, and returns
// it, or ErrWoken where only that deadline made the read fail. A read that brought
// octets although it was woken leaves the wake to the next read.
func (w *waker) unpark(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked = false
	if !w.passed {
		return err
	}
	w.passed = false
	_ = w.conn.SetReadDeadline(time.Time{}) // fails on a closed connection: the next read says so
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.woken = false
		return ErrWoken
	}
	return err
}

func (w *waker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = true
	if w.parked && !w.passed {
		_ = w.conn.SetReadDeadline(longAgo) // fails on a closed connection: its reader returns anyway
		w.passed = true
	}
}

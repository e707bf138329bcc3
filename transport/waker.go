package transport

import (
	"errors"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// longAgo is a read deadline that has passed.
var longAgo = time.Unix(1, 0)

// A waker interrupts a read that is parked in the runtime's poller. The only way to do so
// without closing the connection is to set a read deadline in the past. The reader must remove
// it before the next read. Both happen under the mutex, so that they cannot be reordered.
type waker struct {
	conn interface{ SetReadDeadline(time.Time) error }

	mu     lockorder.Mutex[lockorder.Leaf]
	parked bool // a reader is parked, or about to park
	woken  bool // wake was called, and no read has reported it yet
	passed bool // the deadline in the past is set
}

// park is called before the reader parks. It reports false if wake was called before: the
// reader must not park, and returns ErrWoken.
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

// unpark is called after the read that followed park. It returns err, the error of the
// read, or ErrWoken if the deadline of wake made the read fail. If a read was woken but has
// returned octets, the next read reports the wake.
func (w *waker) unpark(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked = false
	if !w.passed {
		return err
	}
	w.passed = false
	_ = w.conn.SetReadDeadline(time.Time{}) // fails on a closed connection; the next read reports that
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
		_ = w.conn.SetReadDeadline(longAgo) // fails on a closed connection, whose reader returns anyway
		w.passed = true
	}
}

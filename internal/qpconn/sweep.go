package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

const (
	// quickReturn is how soon a waiter comes back for which the right to receive is reserved:
	// to arm and disarm around each wait costs two system calls.
	quickReturn = 200 * time.Microsecond
	// reserveTime is about how long the right to receive is reserved, and that to send offered.
	reserveTime = 500 * time.Microsecond
	// shareTime is how long a goroutine takes that sends a share, waits for completions, and
	// comes back.
	shareTime = 2 * time.Millisecond
	// lingerTime is how long a reader lingers when nothing comes. That is how the next message
	// is noticed soonest; where messages are further apart the reader would linger in vain,
	// and to wake it costs more than to arm.
	lingerTime = 10 * time.Millisecond
)

// pace is what a Conn remembers of time. It decides only what is quicker: whether the right
// to receive is reserved, whether a reader lingers, and whether the rest of a share is left to a
// waiter. The mutex of the Conn guards it.
type pace struct {
	left   time.Time // when a waiter last gave the right to receive up
	quick  bool      // the waiter that has it came soon after that
	waits  uint64    // that have ended
	waited uint64    // waits, when a share was last sent
	shared time.Time // when that was
	seen   time.Time // when a reader last found that there was nothing more
	listed bool      // with the Sweeper
}

// came notes that a waiter begins to receive.
func (p *pace) came() { p.quick = time.Since(p.left) < quickReturn }

// leaves notes that it gives that up, and reports whether it is expected back at once.
func (p *pace) leaves() bool {
	p.left = time.Now()
	return p.quick
}

// expects reports, when a share was sent, whether a waiter is expected to come at once: since
// the one before, which is not long ago, a wait has ended.
func (p *pace) expects() bool {
	now := time.Now()
	soon := p.waits != p.waited && now.Sub(p.shared) < shareTime
	p.waited, p.shared = p.waits, now
	return soon
}

// Waited tells that a wait for completions of the send queue has ended without [Conn.Wait].
func (c *Conn) Waited() {
	c.mu.Lock()
	c.pace.waits++
	c.mu.Unlock()
}

// lingers reports whether a reader that has found nothing more is to wait for more.
func (p *pace) lingers() bool {
	now := time.Now()
	soon := now.Sub(p.seen) < lingerTime
	p.seen = now
	return soon
}

// sweepAfter is after what time the Sweeper is to look.
func sweepAfter(rx rxState) time.Duration {
	if rx >= rxBusy {
		return lingerTime / 2
	}
	return reserveTime
}

// sweep looks after the right to receive of a Conn. It returns after what time it is to do
// so again, 0 if that is not needed.
func (c *Conn) sweep(now time.Time) time.Duration {
	c.mu.Lock()
	a, p := &c.arbiter, &c.pace
	again := time.Duration(0)
	switch {
	case a.rx == rxReserved:
		again = max(0, reserveTime-now.Sub(p.left))
	case a.tx == txOffered && !a.held():
		again = max(0, reserveTime-now.Sub(latest(p.left, p.shared)))
	case a.rx == rxParked && a.readerHolds() && now.Sub(p.seen) < lingerTime:
		again = lingerTime / 2
	}
	if again > 0 {
		c.mu.Unlock()
		return again
	}
	p.listed = false
	c.act(a.sweep())
	return 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sweepNow is sweep where the Sweeper cannot be set.
func (c *Conn) sweepNow() {
	c.mu.Lock()
	c.pace.listed = false
	c.act(c.arbiter.sweep())
}

// A Sweeper looks now and then after the connections on its list, so that no right to receive
// is reserved, and no reader lingers, when nothing happens any more. It needs no goroutine:
// its alarm calls it, and is set only while there is a connection to look after.
type Sweeper struct {
	// alarm calls look once, after d or so.
	alarm func(d time.Duration, look func()) error
	ring  func() // look; made once

	mu    lockorder.Mutex[lockorder.Sweeper]
	list  []*Conn
	spare []*Conn       // empty: the list while look goes through the other
	due   time.Duration // after which the alarm was set; 0: it is not set
}

// NewSweeper returns a Sweeper that is called by means of alarm, which must not call back
// before it returns.
func NewSweeper(alarm func(d time.Duration, look func()) error) *Sweeper {
	s := &Sweeper{alarm: alarm}
	s.ring = s.look
	return s
}

// add puts c on the list, if it is not there, to be looked after within d. It reports false if
// that is not possible.
func (s *Sweeper) add(c *Conn, d time.Duration, listed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.set(d) {
		return false
	}
	if !listed {
		s.list = append(s.list, c)
	}
	return true
}

// set sees to it that the alarm rings within d or so. mu is held.
func (s *Sweeper) set(d time.Duration) bool {
	if s.due != 0 && s.due <= d {
		return true
	}
	if s.alarm(d, s.ring) != nil {
		return false
	}
	s.due = d
	return true
}

// look goes through the list once.
func (s *Sweeper) look() {
	s.mu.Lock()
	list := s.list
	s.list, s.spare, s.due = s.spare, nil, 0
	s.mu.Unlock()

	var next time.Duration // until those that are left must be looked at again
	left := list[:0]
	now := time.Now()
	for _, c := range list {
		if again := c.sweep(now); again > 0 {
			left = append(left, c)
			if next == 0 || again < next {
				next = again
			}
		}
	}
	clear(list[len(left):])

	s.mu.Lock()
	defer s.mu.Unlock()
	came := s.list // meanwhile
	s.list = append(left, came...)
	clear(came)
	s.spare = came[:0]
	if next != 0 {
		s.set(next)
	}
}

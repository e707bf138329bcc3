package qpconn

import (
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

const (
	// quickReturn is how soon a waiter must come back for the right to receive to be reserved for
	// its next wait: arming and disarming around each wait costs two system calls.
	quickReturn = 200 * time.Microsecond
	// reserveTime is roughly how long the right to receive stays reserved, and the right to send
	// stays offered.
	reserveTime = 500 * time.Microsecond
	// shareTime is the longest that a goroutine is expected to need to send a share, wait for
	// completions, and come back.
	shareTime = 2 * time.Millisecond
	// lingerTime is how long a reader waits for more input before it gives up the right. A
	// waiting reader notices the next message soonest. If messages are further apart, waiting
	// is useless, and waking the reader costs more than arming.
	lingerTime = 10 * time.Millisecond
)

// pace records when recent events of a Conn happened. It affects only speed: whether the right
// to receive is reserved, whether a reader lingers, and whether the rest of a share is left to a
// waiter. The mutex of the Conn guards it.
type pace struct {
	left   time.Time // when a waiter last gave up the right to receive
	waits  uint64    // number of waits that have ended
	waited uint64    // value of waits when the last share was sent
	shared time.Time // when the last share was sent
	seen   time.Time // when a reader last found no more input
	quick  bool      // the last waiter that could read at once came within quickReturn of left
	listed bool      // the Conn is on the list of the Sweeper
}

// came records that a waiter begins to receive.
func (p *pace) came() { p.quick = time.Since(p.left) < quickReturn }

// leaves records that a waiter gives up the right to receive, and reports whether it is expected
// back at once.
func (p *pace) leaves() bool {
	p.left = time.Now()
	return p.quick
}

// expects is called after a share was sent. It reports whether a waiter is expected to come at
// once: a wait has ended since the previous share, which was sent less than shareTime ago.
func (p *pace) expects() bool {
	now := time.Now()
	soon := p.waits != p.waited && now.Sub(p.shared) < shareTime
	p.waited, p.shared = p.waits, now
	return soon
}

// Waited reports the end of a wait for send queue completions that did not use [Conn.Wait].
// c may be nil, as for Nudge.
func (c *Conn) Waited() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.pace.waits++
	c.mu.Unlock()
}

// lingers reports whether a reader that has found no more input is to wait for more.
func (p *pace) lingers() bool {
	now := time.Now()
	soon := now.Sub(p.seen) < lingerTime
	p.seen = now
	return soon
}

// sweepAfter returns the time after which the Sweeper is to sweep a Conn in the state rx.
func sweepAfter(rx rxState) time.Duration {
	if rx >= rxBusy {
		return lingerTime / 2
	}
	return reserveTime
}

// sweep ends a reservation, an offer or a lingering wait whose time is over. It returns the time
// after which it must be called again, or 0 if it need not be.
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

// sweepNow replaces sweep when the alarm of the Sweeper cannot be set.
func (c *Conn) sweepNow() {
	c.mu.Lock()
	c.pace.listed = false
	c.act(c.arbiter.sweep())
}

// A Sweeper sweeps the connections on its list from time to time, so that on an idle connection
// no right stays reserved or offered, and no reader lingers. It needs no goroutine: its alarm
// calls it. The alarm is set only while the list holds a connection.
type Sweeper struct {
	// alarm calls look once, after about d.
	alarm func(d time.Duration, look func()) error
	ring  func() // the method look, as a value that is created once

	mu    lockorder.Mutex[lockorder.Sweeper]
	list  []*Conn
	spare []*Conn       // empty; becomes the list while look sweeps the old list
	due   time.Duration // the duration for which the alarm was set; 0: it is not set
}

// NewSweeper returns a Sweeper that uses alarm, which must not call look before it returns.
func NewSweeper(alarm func(d time.Duration, look func()) error) *Sweeper {
	s := &Sweeper{alarm: alarm}
	s.ring = s.look
	return s
}

// add puts c on the list, unless it is listed already, and sets the alarm so that c is swept
// within d. It reports false if the alarm cannot be set.
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

// set sets the alarm, unless it is due within d already. It reports false if the alarm cannot be
// set. mu must be held.
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

// look sweeps all connections on the list once.
func (s *Sweeper) look() {
	s.mu.Lock()
	list := s.list
	s.list, s.spare, s.due = s.spare, nil, 0
	s.mu.Unlock()

	var next time.Duration // after which the remaining connections must be swept again
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
	added := s.list // connections added meanwhile
	s.list = append(left, added...)
	clear(added)
	s.spare = added[:0]
	if next != 0 {
		s.set(next)
	}
}

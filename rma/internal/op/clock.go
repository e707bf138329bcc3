package op

import (
	"math"
	"time"
)

// never is the time of a timer that does not run.
const never = time.Duration(math.MaxInt64)

// A clock holds the time since it was started, which does not go backwards, and the next time at which
// a timer may run out.
type clock struct {
	start time.Time
	now   time.Duration
	next  time.Duration // no timer runs out earlier; one may run out at that time
}

func newClock(now time.Time) clock { return clock{start: now, next: never} }

// at sets the time, and returns it.
func (c *clock) at(now time.Time) time.Duration {
	c.now = max(c.now, now.Sub(c.start))
	return c.now
}

// timer starts a timer: it returns the time when it runs out.
func (c *clock) timer(d time.Duration) time.Duration {
	due := c.now + d
	c.next = min(c.next, due)
	return due
}

// limit is like timer, but 0 means never.
func (c *clock) limit(d time.Duration) time.Duration {
	if d == 0 {
		return never
	}
	return c.timer(d)
}

// deadline returns when the next timer may run out.
func (c *clock) deadline() (time.Time, bool) {
	if c.next == never {
		return time.Time{}, false
	}
	return c.start.Add(c.next), true
}

// MinGuard returns the shortest guard for a pull timeout: it covers the difference between the rates
// of two clocks.
func MinGuard(pullTimeout time.Duration) time.Duration {
	return 10*time.Millisecond + pullTimeout/1000
}

package solicit

import "time"

const (
	// baseAge is how long a base delay holds without being measured again.
	baseAge = 10 * time.Second
	// leastDelay is the shortest delay that is used, so that a rate stays finite.
	leastDelay = time.Microsecond
	// drainDelays is the length of a drain, in delays as measured at its beginning.
	drainDelays = 3
)

// A base is the delay of the path without a queue: the least delay that was measured in the last 10 s.
//
// A user that always fills the path measures its own queue as part of each delay. After 10 s it would
// take that delay for the base, and add another queue. So when the base gets old there is a drain: the
// user sends less, and the least delay measured meanwhile is the new base.
type base struct {
	rtt      time.Duration // 0: not known yet
	measured time.Duration // when
	draining bool
	until    time.Duration // the end of the drain
	low      time.Duration // the least delay in it
}

// add adds a measured delay.
func (b *base) add(now, delay time.Duration) {
	switch {
	case b.rtt == 0, delay <= b.rtt:
		b.rtt, b.measured, b.draining = delay, now, false
	case !b.draining && now-b.measured > baseAge:
		b.draining, b.until, b.low = true, now+drainDelays*delay, delay
	case b.draining:
		b.low = min(b.low, delay)
		if b.over(now) {
			b.rtt, b.measured, b.draining = b.low, now, false
		}
	}
}

// over reports whether the next delay ends a drain.
func (b *base) over(now time.Duration) bool { return b.draining && now >= b.until }

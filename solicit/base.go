package solicit

import "time"

const (
	// baseAge is how long a base delay holds without being measured again.
	baseAge = 10 * time.Second
	// leastDelay is what a delay counts as at least, so that a rate stays finite.
	leastDelay = time.Microsecond
	// drainDelays is how long a drain takes, in delays as they are at its beginning.
	drainDelays = 3
)

// A base is the delay of the path without a queue: the least that was measured in the last 10 s.
//
// A user that always fills the path has its own queue in all that it measures, and would take that for
// the base after 10 s, and add another queue. So when the base gets old there is a drain: the user
// sends less, and the least delay meanwhile is the new base.
type base struct {
	rtt      time.Duration // 0: not known yet
	measured time.Duration // when
	draining bool
	until    time.Duration // the end of the drain
	low      time.Duration // the least delay in it
}

// add takes a delay that was measured.
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

// over tells whether the next delay ends a drain.
func (b *base) over(now time.Duration) bool { return b.draining && now >= b.until }

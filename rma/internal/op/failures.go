package op

import "time"

// failures detects when there are more than a number of events per second: each event occupies its
// part of a second, one after the other, and they may run ahead of the clock by a second.
type failures struct {
	each time.Duration
	used time.Duration
}

func newFailures(perSecond int) failures {
	return failures{each: time.Second / time.Duration(max(perSecond, 1))}
}

func (f *failures) add(now time.Duration) { f.used = max(f.used, now) + f.each }

func (f *failures) over(now time.Duration) bool { return f.used-now > time.Second }

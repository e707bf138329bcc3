package solicit

import "time"

const (
	smallOp = 4 << 10 // octets of an operation that measures the path, and not itself

	sizeGain    = 1.25 // times bandwidth times delay: a little more than fills the path
	mostGrowth  = 2.0  // of the size in a step
	mostShrink  = 0.75
	rateSamples = 10 // steps in which the best rate counts
)

// A sizing measures how large the window ought to be.
type sizing struct {
	min, max int64
	target   int64

	base   base
	small  bool          // a small operation has been measured
	smalls time.Duration // when the last one was

	step   time.Duration // when the step of now began
	octets int64         // that came in it
	rates  [rateSamples]float64
	next   int
}

func newSizing(cfg *Config) sizing {
	return sizing{min: cfg.Min, max: cfg.Max, target: cfg.Start}
}

// size is how large the window ought to be now.
func (s *sizing) size() int64 {
	if s.base.draining {
		return max(s.min, s.target/2)
	}
	return s.target
}

// done takes an operation of n octets that came whole, remote after its grant.
func (s *sizing) done(now time.Duration, n int64, remote time.Duration) {
	if s.min == s.max {
		return
	}
	remote = max(remote, leastDelay)
	first := s.base.rtt == 0
	if s.measures(now, n) {
		s.base.add(now, remote)
	}
	if first {
		s.step = now
		return
	}
	s.octets += n
	if past := now - s.step; past >= s.base.rtt {
		s.rates[s.next] = float64(s.octets) / past.Seconds()
		s.next = (s.next + 1) % rateSamples
		s.step, s.octets = now, 0
		s.resize()
	}
}

// measures tells whether the delay of an operation counts: that of small ones, and of all where there
// are no small ones, or where a drain waits for its end.
func (s *sizing) measures(now time.Duration, n int64) bool {
	if n <= smallOp {
		s.small, s.smalls = true, now
		return true
	}
	return !s.small || now-s.smalls > baseAge || s.base.over(now)
}

// resize brings the target nearer to bandwidth times delay.
func (s *sizing) resize() {
	best := 0.0
	for _, r := range s.rates {
		best = max(best, r)
	}
	want := sizeGain * best * s.base.rtt.Seconds()
	now := float64(s.target)
	want = min(max(want, now*mostShrink), now*mostGrowth)
	s.target = int64(min(max(want, float64(s.min)), float64(s.max)))
}

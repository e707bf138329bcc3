package solicit

import "time"

const (
	smallOp = 4 << 10 // octets of an operation whose own length hardly affects its delay

	sizeGain    = 1.25 // times bandwidth times delay: a little more than what fills the path
	mostGrowth  = 2.0  // of the size in a step
	mostShrink  = 0.75
	rateSamples = 10 // steps whose best rate counts
)

// A sizing measures how large the window should be.
type sizing struct {
	min, max int64
	target   int64

	base   base
	small  bool          // a small operation has been measured
	smalls time.Duration // when the last small operation was measured

	step   time.Duration // when the current step began
	octets int64         // received in this step
	rates  [rateSamples]float64
	next   int
}

func newSizing(cfg *Config) sizing {
	return sizing{min: cfg.Min, max: cfg.Max, target: cfg.Start}
}

// size returns how large the window should be now.
func (s *sizing) size() int64 {
	if s.base.draining {
		return max(s.min, s.target/2)
	}
	return s.target
}

// done adds an operation of n octets, all of which have arrived; remote is the time since its grant.
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

// measures reports whether the delay of an operation counts: it does for small operations, and for all
// operations if there are no small ones or if the next delay ends a drain.
func (s *sizing) measures(now time.Duration, n int64) bool {
	if n <= smallOp {
		s.small, s.smalls = true, now
		return true
	}
	return !s.small || now-s.smalls > baseAge || s.base.over(now)
}

// resize moves the target towards bandwidth times delay.
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

package solicit

import (
	"math"
	"time"
)

const (
	startCwnd = 1
	leastCwnd = 1.0 / 64
	mostCwnd  = 1024
	drainCwnd = 1.0 / 2 // the share of the cwnd that is used in a drain

	defaultSlack = 500 * time.Microsecond
	mostSlack    = time.Hour // a longer slack has no further effect, and would overflow when it is multiplied
	// slackCwnd is the cwnd at which the delay may exceed the base by Slack. With a smaller cwnd it may exceed
	// it by more. So flows that share a queue converge to the same cwnd, and a flow that measured its base while
	// another flow had a queue does not displace that flow.
	slackCwnd = 16

	unknownRTT = time.Millisecond // until a delay has been measured

	growth    = 0.5       // operations that a delay adds to the cwnd
	cutGain   = 1.2       // times the queue: a cut leaves no queue, so that all flows see the base
	mostCut   = 0.5       // of the cwnd
	smoothing = 1.0 / 8.0 // the share of a new delay in the average
)

// A Pacer bounds how many operations are in flight to one peer, in one direction. That number, the
// cwnd, depends on how far the remote delay, from the grant of an operation to its end, exceeds the
// least remote delay. It begins with 1 and doubles in each delay until the first sign of a queue.
// After that it grows by one in two delays, and is cut when there is a queue, or when an operation is
// refused or times out: by half at most, and once per delay.
//
// A cwnd below 1 means pauses: after an operation, the next one is issued no earlier than the least
// delay divided by the cwnd.
//
// The zero Pacer is ready for use. It is not safe for concurrent use.
type Pacer struct {
	// Slack is by how much the delay may exceed that of the empty path when 16 operations are in
	// flight: twice as much with 4 operations, half as much with 64. 0: 500 microseconds; an hour at
	// most.
	Slack time.Duration

	began   bool
	start   time.Time
	cwnd    float64 // operations
	cutOnce bool
	cut     time.Duration
	issued  time.Duration
	base    base
	delay   time.Duration // smoothed
	local   local
}

// at returns the time since its first call, which initialises the Pacer.
func (p *Pacer) at(now time.Time) time.Duration {
	if !p.began {
		p.began, p.start, p.cwnd = true, now, startCwnd
		p.local = newLocal()
	}
	return now.Sub(p.start)
}

// MayIssue reports whether one more operation may be issued while inFlight operations have not ended.
// If so, it counts as issued. If not, at is the time at which to ask again, or the zero Time if that
// is after the next call of Done.
func (p *Pacer) MayIssue(now time.Time, inFlight int) (ok bool, at time.Time) {
	t, cwnd := p.at(now), p.cwnd
	if p.base.draining {
		cwnd *= drainCwnd
	}
	switch {
	case cwnd >= 1:
		ok = inFlight < int(cwnd)
	case inFlight == 0:
		next := p.issued + time.Duration(float64(p.rtt())/cwnd)
		if t < next {
			return false, p.start.Add(next)
		}
		ok = true
	}
	if ok {
		p.issued = t
	}
	return ok, time.Time{}
}

// Done tells the Pacer how an issued operation has ended: total is the time since its Enqueue, and
// issue the part of it until its grant.
func (p *Pacer) Done(now time.Time, issue, total time.Duration, o Outcome) {
	t := p.at(now)
	p.local.done(t, issue)
	switch o {
	case OK:
		p.measured(t, max(total-issue, leastDelay))
	case Nack, Timeout:
		p.reduce(t, mostCut)
	default:
	}
}

// measured adds a remote delay.
func (p *Pacer) measured(t, remote time.Duration) {
	p.base.add(t, remote)
	if p.delay == 0 {
		p.delay = remote
	}
	// With few operations in flight the average must not reach back further than a delay.
	p.delay += time.Duration(float64(remote-p.delay) * max(smoothing, min(1, 1/p.cwnd)))
	switch queue := p.delay - p.base.rtt; {
	case queue > p.allowed():
		p.reduce(t, 1-cutGain*float64(queue)/float64(p.delay))
	case !p.cutOnce:
		p.cwnd = min(p.cwnd+1, mostCwnd)
	default:
		p.cwnd = min(p.cwnd+growth*min(p.cwnd, 1/p.cwnd), mostCwnd)
	}
}

// allowed returns the delay that the queue may add.
func (p *Pacer) allowed() time.Duration {
	slack := min(p.Slack, mostSlack)
	if slack <= 0 {
		slack = defaultSlack
	}
	return time.Duration(float64(slack) * math.Sqrt(slackCwnd/p.cwnd))
}

// reduce cuts the cwnd, unless the operation measured now was issued before the last cut.
func (p *Pacer) reduce(t time.Duration, by float64) {
	if p.cutOnce && t-p.cut < max(p.rtt(), p.delay) {
		return
	}
	p.cutOnce, p.cut = true, t
	p.cwnd = max(p.cwnd*max(by, mostCut), leastCwnd)
}

func (p *Pacer) rtt() time.Duration {
	if p.base.rtt == 0 {
		return unknownRTT
	}
	return p.base.rtt
}

// Depth returns the greatest number of operations that the caller should have in the queue of its
// Window. It depends on how long they wait there.
func (p *Pacer) Depth() int {
	if !p.began {
		return startDepth
	}
	return p.local.depth
}

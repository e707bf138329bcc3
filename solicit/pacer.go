package solicit

import (
	"math"
	"time"
)

const (
	startCwnd = 1
	leastCwnd = 1.0 / 64
	mostCwnd  = 1024
	drainCwnd = 1.0 / 2 // the share of it that is used in a drain

	defaultSlack = 500 * time.Microsecond
	mostSlack    = time.Hour // a longer one is no other, and would overflow when it is multiplied
	// slackCwnd is the cwnd at which the delay may exceed the base by Slack. It may be more where the
	// cwnd is smaller. So flows that share a queue come to the same cwnd, and one that measured its
	// base with the queue of another does not take all from it.
	slackCwnd = 16

	unknownRTT = time.Millisecond // until one was measured

	growth    = 0.5       // operations that a delay adds to the cwnd
	cutGain   = 1.2       // times the queue: a cut leaves none, so that all see the base
	mostCut   = 0.5       // of the cwnd
	smoothing = 1.0 / 8.0 // the share of a new delay in the average
)

// A Pacer bounds how many operations are in flight to one peer, in one direction. That number, the
// cwnd, depends on how far the remote delay, from the grant of an operation to its end, exceeds the
// least one. It begins with 1 and doubles in each delay until the first sign of a queue. After that
// it grows by one in two delays, and is cut when there is a queue, an operation is refused or times
// out: by half at most, and once in a delay.
//
// A cwnd below 1 means pauses: the next operation is issued no earlier than the least delay divided
// by the cwnd after the last one.
//
// The zero Pacer is ready for use. It is not safe for concurrent use.
type Pacer struct {
	// Slack is by how much the delay may exceed that of the empty path where 16 operations are in
	// flight: twice that where there are 4, half of it where there are 64. 0: 500 microseconds; an hour
	// at most.
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

// at begins with the first call, and returns the time since then.
func (p *Pacer) at(now time.Time) time.Duration {
	if !p.began {
		p.began, p.start, p.cwnd = true, now, startCwnd
		p.local = newLocal()
	}
	return now.Sub(p.start)
}

// MayIssue tells whether one more operation may be issued while inFlight ones have not ended. If so,
// it counts as issued. If not, at is the time at which to ask again, and the zero Time if that is
// after the next call of Done.
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

// Done takes how an operation ended that was issued: total is the time from its Enqueue, and issue
// the part of it until its grant.
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

// measured takes a remote delay.
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

// allowed is the delay that the queue may have.
func (p *Pacer) allowed() time.Duration {
	slack := min(p.Slack, mostSlack)
	if slack <= 0 {
		slack = defaultSlack
	}
	return time.Duration(float64(slack) * math.Sqrt(slackCwnd/p.cwnd))
}

// reduce cuts the cwnd, unless what is measured now was issued before the last cut.
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

// Depth is how many operations the caller should have in the queue of its Window at most, by how
// long they wait there.
func (p *Pacer) Depth() int {
	if !p.began {
		return startDepth
	}
	return p.local.depth
}

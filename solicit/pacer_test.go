package solicit

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const rtt = 10 * time.Millisecond

// A paced is a Pacer with a clock.
type paced struct {
	Pacer
	now time.Time
}

// done ends an operation that took remote on the path, and did not wait before.
func (p *paced) done(remote time.Duration, o Outcome) {
	p.Done(p.now, 0, remote, o)
}

// newPaced returns a Pacer that knows the path and has had its first cut long ago.
func newPaced(cwnd float64) *paced {
	p := &paced{now: epoch}
	p.done(rtt, OK)
	p.now = p.now.Add(time.Second)
	p.done(rtt, Nack)
	p.now = p.now.Add(time.Second)
	p.cwnd = cwnd
	return p
}

func TestSOL_14_BeginsWithOneAndDoubles(t *testing.T) {
	p := &paced{now: epoch}
	require.Equal(t, PacerStats{Cwnd: 1, Depth: startDepth}, p.Stats())
	inFlight := 0
	for _, want := range []int{1, 2, 4, 8} {
		for {
			ok, at := p.MayIssue(p.now, inFlight)
			require.Zero(t, at)
			if !ok {
				break
			}
			inFlight++
		}
		require.Equal(t, want, inFlight)
		p.now = p.now.Add(rtt)
		for ; inFlight > 0; inFlight-- {
			p.done(rtt, OK)
		}
	}
	require.Equal(t, rtt, p.Stats().MinRTT)
	require.Equal(t, rtt, p.Stats().Remote)
}

func TestSOL_14_AdditiveIncrease(t *testing.T) {
	p := newPaced(8)
	for range 16 { // two delays of the path
		p.done(rtt, OK)
	}
	require.InDelta(t, 9, p.Stats().Cwnd, 0.1)

	p = newPaced(1.0 / 4)
	p.done(rtt, OK)
	require.InDelta(t, 3.0/8, p.Stats().Cwnd, 1e-9)

	p = newPaced(mostCwnd)
	p.done(rtt, OK)
	require.EqualValues(t, mostCwnd, p.Stats().Cwnd)
	p.cutOnce = false
	p.done(rtt, OK)
	require.EqualValues(t, mostCwnd, p.Stats().Cwnd)
}

// congest sets the smoothed delay to this value.
func (p *paced) congest(delay time.Duration) { p.delay = delay }

func TestSOL_14_CutOnceInADelay(t *testing.T) {
	p := newPaced(16)
	p.congest(2 * rtt)
	p.done(2*rtt, OK)
	require.InDelta(t, 8, p.Stats().Cwnd, 1e-9)
	p.now = p.now.Add(2*rtt - 1)
	p.done(2*rtt, OK)
	p.done(2*rtt, Nack)
	require.InDelta(t, 8, p.Stats().Cwnd, 1e-9, "what ends now was issued before the cut")
	p.now = p.now.Add(1)
	p.done(2*rtt, OK)
	require.InDelta(t, 4, p.Stats().Cwnd, 1e-9)
}

func TestSOL_14_CutTakesTheQueueAndHalfAtMost(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  float64
	}{
		{rtt + 499*time.Microsecond, 16 + growth/16},
		{rtt + 500*time.Microsecond, 16 + growth/16}, // the greatest value that is allowed
		{rtt + 501*time.Microsecond, 16 * (1 - cutGain*0.501/10.501)},
		{rtt + 2*time.Millisecond, 16 * (1 - cutGain*2/12)},
		{100 * rtt, 8},
	} {
		p := newPaced(16)
		p.congest(c.delay)
		p.done(c.delay, OK)
		require.InDelta(t, c.want, p.Stats().Cwnd, 1e-9, c.delay)
	}
	p := newPaced(leastCwnd)
	p.congest(100 * rtt)
	p.done(100*rtt, OK)
	require.EqualValues(t, leastCwnd, p.Stats().Cwnd)
}

// TestSOL_14_SmallOnesMayWaitLonger: and a Slack that is too long counts as an hour.
func TestSOL_14_SmallOnesMayWaitLonger(t *testing.T) {
	for _, c := range []struct {
		cwnd  float64
		slack time.Duration
		want  time.Duration
	}{
		{16, 0, 500 * time.Microsecond},
		{4, 0, time.Millisecond},
		{64, 0, 250 * time.Microsecond},
		{1, 0, 2 * time.Millisecond},
		{16, 3 * time.Millisecond, 3 * time.Millisecond},
		{16, math.MaxInt64, time.Hour},
		{leastCwnd, math.MaxInt64, 32 * time.Hour},
	} {
		p := newPaced(c.cwnd)
		p.Slack = c.slack
		require.Equal(t, c.want, p.allowed())
	}
}

// TestSOL_14_AverageIsOfOneDelay: over eight operations, or over as many as are in flight if they are fewer.
func TestSOL_14_AverageIsOfOneDelay(t *testing.T) {
	for _, c := range []struct {
		cwnd float64
		want time.Duration
	}{
		{16, rtt + rtt/8},
		{8, rtt + rtt/8},
		{4, rtt + rtt/4},
		{1, 2 * rtt},
		{1.0 / 8, 2 * rtt},
	} {
		p := newPaced(c.cwnd)
		p.done(2*rtt, OK)
		require.Equal(t, c.want, p.Stats().Remote, c.cwnd)
	}
}

func TestSOL_14_RefusalsAndTimeoutsHalve(t *testing.T) {
	for _, o := range []Outcome{Nack, Timeout} {
		p := newPaced(16)
		p.done(rtt, o)
		p.done(rtt, o)
		require.InDelta(t, 8, p.Stats().Cwnd, 1e-9, o)
	}
	p := newPaced(16)
	p.done(time.Hour, Failed)
	require.InDelta(t, 16, p.Stats().Cwnd, 1e-9)
	require.Equal(t, rtt, p.Stats().Remote, "only what came tells the delay")
}

func TestSOL_14_PausesBelowOneOperation(t *testing.T) {
	p := newPaced(1.0 / 4)
	ok, _ := p.MayIssue(p.now, 0)
	require.True(t, ok)
	issued := p.now
	p.now = p.now.Add(time.Millisecond)
	ok, at := p.MayIssue(p.now, 1)
	require.False(t, ok)
	require.Zero(t, at, "the one in flight must end first")
	ok, at = p.MayIssue(p.now, 0)
	require.False(t, ok)
	require.Equal(t, issued.Add(4*rtt), at)
	ok, _ = p.MayIssue(at.Add(-1), 0)
	require.False(t, ok)
	ok, _ = p.MayIssue(at, 0)
	require.True(t, ok)
	_, next := p.MayIssue(at, 0)
	require.Equal(t, at.Add(4*rtt), next, "each of them pauses")
}

// TestSOL_14_PausesAreBoundedOnAnUnknownWay: a peer that refuses from the beginning is soon tried again.
func TestSOL_14_PausesAreBoundedOnAnUnknownWay(t *testing.T) {
	p := &paced{now: epoch}
	for range 100 {
		ok, at := p.MayIssue(p.now, 0)
		if !ok {
			p.now = at
			ok, _ = p.MayIssue(p.now, 0)
		}
		require.True(t, ok)
		p.now = p.now.Add(time.Second)
		p.done(time.Second, Timeout)
	}
	issued := p.now
	p.MayIssue(p.now, 0)
	_, at := p.MayIssue(p.now, 0)
	require.Equal(t, issued.Add(64*unknownRTT), at)
}

// TestSOL_14_BaseIsMeasuredAgain: after 10 s with a queue, the number of operations is halved so that it drains.
func TestSOL_14_BaseIsMeasuredAgain(t *testing.T) {
	p := newPaced(64)
	p.Slack = time.Second // so that there are no cuts
	p.base.measured = p.at(p.now)
	p.now = p.now.Add(baseAge)
	p.done(2*rtt, OK)
	require.False(t, p.base.draining)
	p.now = p.now.Add(1)
	p.done(2*rtt, OK)
	require.True(t, p.base.draining)
	ok, _ := p.MayIssue(p.now, 31)
	require.True(t, ok)
	ok, _ = p.MayIssue(p.now, 33)
	require.False(t, ok)
	p.done(3*rtt/2, OK)
	p.now = p.now.Add(drainDelays * 2 * rtt)
	p.done(2*rtt, OK)
	require.False(t, p.base.draining)
	require.Equal(t, 3*rtt/2, p.Stats().MinRTT)
	p.done(rtt, OK)
	require.Equal(t, rtt, p.Stats().MinRTT, "a lower one counts at once")
}

// TestSOL_15_LocalQueueCutsNoCwnd: a wait for the local grant says nothing about the path, and a slow path says
// nothing about the local queue.
func TestSOL_15_LocalQueueCutsNoCwnd(t *testing.T) {
	p := newPaced(16)
	for range 100 {
		p.now = p.now.Add(time.Second)
		p.Done(p.now, time.Second, time.Second+rtt, OK)
	}
	require.Greater(t, p.Stats().Cwnd, 16.0)
	require.Equal(t, rtt, p.Stats().Remote)
	require.Equal(t, 1, p.Depth())

	depth := newPaced(16)
	for range 5 {
		depth.now = depth.now.Add(1100 * time.Millisecond)
		depth.done(time.Second, OK)
	}
	require.Less(t, depth.Stats().Cwnd, 1.0)
	require.Equal(t, startDepth+7, depth.Depth())
}

// TestSOL_15_DepthFollowsTheIssueDelay: it is halved if operations wait longer than 5 ms for their grant, once
// for the operations that wait, and otherwise grows by one.
func TestSOL_15_DepthFollowsTheIssueDelay(t *testing.T) {
	require.Equal(t, startDepth, new(Pacer).Depth())
	l := newLocal()
	now := time.Second
	for range 2000 {
		l.done(now, issueTarget)
	}
	require.Equal(t, mostDepth, l.depth)
	l.done(now, issueTarget+time.Microsecond)
	require.Equal(t, mostDepth/2, l.depth)
	l.done(now, issueTarget+time.Microsecond)
	require.Equal(t, mostDepth/2, l.depth)
	l.done(now+issueTarget, issueTarget+time.Microsecond)
	require.Equal(t, mostDepth/2, l.depth)
	l.done(now+2*issueTarget, issueTarget+time.Microsecond)
	require.Equal(t, mostDepth/4, l.depth)
	for i := range 100 {
		l.done(now+time.Duration(i)*time.Minute, time.Second)
	}
	require.Equal(t, 1, l.depth)
}

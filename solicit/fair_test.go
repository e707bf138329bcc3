package solicit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A flow always has operations to issue over a link, and issues as many as its Pacer allows.
type flow struct {
	*link
	pacer    Pacer
	n        int64 // octets of each operation
	inFlight int
	asleep   bool
	got      int64
}

func (f *flow) issue() {
	for {
		ok, at := f.pacer.MayIssue(f.clock(), f.inFlight)
		switch {
		case ok:
			f.inFlight++
			began := f.now
			f.send(f.n, func() {
				f.inFlight--
				f.got += f.n
				f.pacer.Done(f.clock(), 0, f.now-began, OK)
				f.issue()
			})
		case at.IsZero() || f.asleep:
			return
		default:
			f.asleep = true
			f.after(at.Sub(f.clock()), func() {
				f.asleep = false
				f.issue()
			})
			return
		}
	}
}

// shares runs the flows for d. It returns each flow's share of the link's rate, times the number of flows,
// and the part of the time that the link was busy.
func shares(l *link, flows []*flow, d time.Duration) (of []float64, used float64) {
	before := make([]int64, len(flows))
	for i, f := range flows {
		before[i] = f.got
	}
	was := l.used
	l.run(d)
	for i, f := range flows {
		of = append(of, float64(f.got-before[i])*float64(len(flows))/(l.rate*d.Seconds()))
	}
	return of, float64(l.used-was) / float64(d)
}

// jain returns the index of fairness: 1 if all have the same share, 1/n if one of n has everything.
func jain(xs []float64) float64 {
	var sum, squares float64
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(xs)) * squares)
}

// A scenario is a link for eight flows.
type scenario struct {
	rate  float64 // Gb/s
	delay time.Duration
	n     int64
}

func (y scenario) String() string { return fmt.Sprintf("%g Gb/s, %v, %d octets", y.rate, y.delay, y.n) }

// start makes eight flows that begin one after the other, at intervals.
func (y scenario) start(apart int) (*link, []*flow) {
	l := &link{world: new(world), rate: y.rate * 1e9 / 8, delay: y.delay}
	var flows []*flow
	for i := range 8 {
		f := &flow{link: l, n: y.n}
		flows = append(flows, f)
		l.after(time.Duration(i*apart)*l.rtt(y.n), f.issue)
	}
	return l, flows
}

// TestSOL_14_FairShareWhenTheRateChanges halves and doubles the rate of a link under eight flows. 50
// delays of the empty link after each change, every flow has its share within 20 percent.
func TestSOL_14_FairShareWhenTheRateChanges(t *testing.T) {
	for _, y := range []scenario{
		{1, time.Millisecond, 4 << 10},
		{10, time.Millisecond, 64 << 10},
		{10, 10 * time.Millisecond, 64 << 10},
		{40, time.Millisecond, 64 << 10},
		{1, 10 * time.Millisecond, 16 << 10},
	} {
		for _, apart := range []int{0, 100} {
			t.Run(fmt.Sprintf("%v, %d apart", y, apart), func(t *testing.T) {
				l, flows := y.start(apart)
				rtt := l.rtt(y.n)
				full := l.rate
				l.run(time.Duration(8*apart+200) * rtt)
				for _, part := range []float64{1, 0.5, 1, 0.5, 1, 2, 1} {
					l.rate = full * part
					l.run(50 * rtt)
					of, used := shares(l, flows, 100*rtt)
					for _, share := range of {
						require.InDelta(t, 1, share, 0.2, "rate times %g: %.2f", part, of)
					}
					require.GreaterOrEqual(t, jain(of), 0.95)
					require.Greater(t, used, 0.95, "rate times %g", part)
					for range 2 {
						of, _ := shares(l, flows, 50*rtt)
						require.GreaterOrEqual(t, jain(of), 0.95, "rate times %g: %.2f", part, of)
					}
				}
			})
		}
	}
}

// TestSOL_14_FairShareInTheLongRun: flows share a link in the end, even if operations are so large that eight of them
// are more than the link holds, and even if flows that begin late measure the queue of the others as part of the
// path.
func TestSOL_14_FairShareInTheLongRun(t *testing.T) {
	for _, y := range []scenario{
		{1, time.Millisecond, 64 << 10},
		{1, 100 * time.Microsecond, 64 << 10},
		{1, 100 * time.Microsecond, 4 << 10},
	} {
		t.Run(y.String(), func(t *testing.T) {
			l, flows := y.start(100)
			l.run(3 * baseAge)
			of, used := shares(l, flows, baseAge)
			require.GreaterOrEqual(t, jain(of), 0.95, "%.2f", of)
			require.Greater(t, used, 0.95)
		})
	}
}

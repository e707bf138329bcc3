package solicit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reader always has operations in the queue of a window over a link.
type reader struct {
	*link
	window *Window
	sizes  []int64 // one after the other
	next   int
}

func newReader(cfg Config, rate float64, delay time.Duration, sizes ...int64) *reader {
	r := &reader{link: &link{world: new(world), rate: rate * 1e9 / 8, delay: delay}, sizes: sizes}
	r.window = New(cfg, r.clock())
	return r
}

func (r *reader) issue() {
	for r.window.Stats().Queued < 16 {
		_, err := r.window.Enqueue(r.clock(), Bulk, r.sizes[r.next%len(r.sizes)])
		if err != nil {
			panic(err)
		}
		r.next++
	}
	for g, ok := r.window.Next(r.clock()); ok; g, ok = r.window.Next(r.clock()) {
		r.send(g.N, func() {
			r.window.Release(r.clock(), g.ID, OK)
			r.issue()
		})
	}
}

// mixed are sizes, every eighth of which measures the path.
var mixed = []int64{4 << 10, 64 << 10, 64 << 10, 64 << 10, 64 << 10, 64 << 10, 64 << 10, 64 << 10}

// TestSOL_13_SizeFollowsBandwidthTimesDelay: within 25 percent of 1.25 times the product after 20
// delays, and within the bounds.
func TestSOL_13_SizeFollowsBandwidthTimesDelay(t *testing.T) {
	for _, c := range []struct {
		rate  float64 // Gb/s
		delay time.Duration
		sizes []int64
		cfg   Config
		want  float64
	}{
		{10, 2 * time.Millisecond, mixed, Config{}, 1.25 * 2.5e6},
		{10, 4 * time.Millisecond, mixed, Config{}, 1.25 * 5e6},
		{40, time.Millisecond, mixed, Config{}, 1.25 * 5e6},
		{40, 100 * time.Microsecond, mixed, Config{Min: 64 << 10}, 1.25 * 500e3},
		{10, 4 * time.Millisecond, mixed, Config{Start: 8 << 20}, 1.25 * 5e6},
		{10, 4 * time.Millisecond, []int64{64 << 10}, Config{}, 1.25 * 5e6}, // no operation is small
		{1, 100 * time.Microsecond, mixed, Config{}, 1 << 20},               // the least
		{10, 4 * time.Millisecond, mixed, Config{Max: 3 << 20}, 3 << 20},    // the most
		{10, 4 * time.Millisecond, mixed, Config{Fixed: 2 << 20}, 2 << 20},
	} {
		t.Run(fmt.Sprintf("%g Gb/s, %v, %+v", c.rate, c.delay, c.cfg), func(t *testing.T) {
			r := newReader(c.cfg, c.rate, c.delay, c.sizes...)
			r.issue()
			r.run(20 * c.delay)
			for range 20 {
				r.run(10 * c.delay)
				require.InEpsilon(t, c.want, float64(r.window.Stats().Limit), 0.25)
			}
		})
	}
}

// TestSOL_13_SizeMovesInSteps: at most by a factor of 2 up and 0.75 down per delay of the path.
func TestSOL_13_SizeMovesInSteps(t *testing.T) {
	const rtt = time.Millisecond
	s := newSizing(&Config{Min: 1 << 10, Max: 1 << 30, Start: 1 << 20})
	now := time.Duration(0)
	s.done(now, 1, rtt)
	step := func(n int64) int64 {
		now += rtt
		s.done(now, n, rtt)
		return s.size()
	}
	require.EqualValues(t, 2<<20, step(100<<20))
	require.EqualValues(t, 4<<20, step(1))
	now += rtt - 1
	s.done(now, 1, rtt)
	require.EqualValues(t, 4<<20, s.size(), "a step is not shorter than the delay")
	for range rateSamples {
		step(1)
	}
	before := s.size()
	require.EqualValues(t, before*3/4, step(1))
	require.EqualValues(t, before*9/16, step(1))
}

// TestSOL_13_SizeStaysInTheLongRun: a window that is always full does not mistake its own queue for the path when
// the measured delay of the empty path has become old.
func TestSOL_13_SizeStaysInTheLongRun(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		delay time.Duration
		want  float64
	}{
		{1, 40 * time.Millisecond, 1.25 * 5e6},
		{1, time.Millisecond, 1 << 20},
	} {
		r := newReader(Config{}, c.rate, c.delay, mixed...)
		r.issue()
		r.run(baseAge)
		for range 10 {
			r.run(baseAge)
			require.InEpsilon(t, c.want, float64(r.window.Stats().Limit), 0.35, "%g Gb/s", c.rate)
		}
		require.Greater(t, float64(r.used), 0.97*float64(r.now))
	}
}

// TestSOL_13_OnlyWhatCameMeasures: outcomes other than OK, and operations that were held, say nothing about the path.
func TestSOL_13_OnlyWhatCameMeasures(t *testing.T) {
	w := New(Config{}, epoch)
	now := epoch
	grant := func() uint64 {
		_, err := w.Enqueue(now, Latency, 4<<10)
		require.NoError(t, err)
		g, ok := w.Next(now)
		require.True(t, ok)
		now = now.Add(time.Millisecond)
		return g.ID
	}
	for _, o := range []Outcome{Nack, Timeout, Failed, 200} {
		w.Release(now, grant(), o)
	}
	id := grant()
	w.Hold(now, id)
	w.Release(now, id, OK)
	require.Zero(t, w.Stats().MinRTT)
	w.Release(now, grant(), OK)
	require.Equal(t, time.Millisecond, w.Stats().MinRTT)
}

// TestSOL_13_AnyOperationEndsADrain: small operations, which otherwise measure the path alone, may cease during it.
func TestSOL_13_AnyOperationEndsADrain(t *testing.T) {
	const rtt = time.Millisecond
	s := newSizing(&Config{Min: 64, Max: 1 << 30, Start: 1 << 20})
	s.done(0, smallOp, rtt)
	now := baseAge + 1
	s.done(now, smallOp, 2*rtt)
	require.Equal(t, s.target/2, s.size())
	s.done(now+drainDelays*2*rtt-1, 1<<20, 3*rtt)
	require.Equal(t, s.target/2, s.size())
	s.done(now+drainDelays*2*rtt, 1<<20, 3*rtt)
	require.Equal(t, s.target, s.size())
	require.Equal(t, 2*rtt, s.base.rtt)
}

// TestSOL_13_TheFirstStepBeginsWithTheFirstDelay: the octets that measured it came before the step.
func TestSOL_13_TheFirstStepBeginsWithTheFirstDelay(t *testing.T) {
	s := newSizing(&Config{Min: 64 * ki, Max: 1024 * ki, Start: 64 * ki})
	s.done(10*time.Millisecond, 1024*ki, 10*time.Millisecond)
	s.done(20*time.Millisecond, 10*ki, 10*time.Millisecond)
	require.InDelta(t, 100*10*ki, s.rates[0], 1)
}

// TestSOL_13_SmallOperationsThatEnd: ten seconds after the last one the others measure the delay again.
func TestSOL_13_SmallOperationsThatEnd(t *testing.T) {
	s := newSizing(&Config{Min: 64 * ki, Max: 1024 * ki, Start: 64 * ki})
	require.True(t, s.measures(time.Second, smallOp))
	require.False(t, s.measures(time.Second+baseAge, 64*ki))
	require.True(t, s.measures(time.Second+baseAge+1, 64*ki))
}

package perf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

func TestMetrics(t *testing.T) {
	s := &sample{ops: 1000, octets: 4e8, elapsed: 2 * time.Second, used: peer.Usage{CPU: time.Second, Mallocs: 500}}
	for i := range 1000 {
		s.times = append(s.times, int64(i+1)*1000)
	}
	for _, c := range []struct {
		m    metric
		want float64
	}{{throughput, 0.2}, {rate, 0.0005}, {cpu, 2.5}, {allocs, 0.5}, {p50, 501}, {p99, 990}, {p999, 999}} {
		require.InDelta(t, c.want, c.m.of(s), 1e-9, c.m.name)
	}
	require.Equal(t, 0.0, p99.of(&sample{}), "no operations were timed")
}

func TestSummaryTakesTheRatioOfEachPair(t *testing.T) {
	speed := metric{"speed", "", func(s *sample) float64 { return float64(s.ops) }}
	of := func(a, b int) pair { return pair{&sample{ops: a}, &sample{ops: b}} }
	// The machine slows down by half from pair to pair: only the ratios stay the same.
	r := summarize("x", speed, "tcp", []pair{of(80, 100), of(40, 50), of(21, 25)})
	require.Equal(t, 0.8, *r.Ratio)
	require.Equal(t, 40.0, *r.Value)
	require.Equal(t, 50.0, *r.BaselineValue)
	require.Equal(t, 3, r.Pairs)

	r = summarize("x", speed, "tcp", []pair{{subject: &sample{ops: 7}}})
	require.Equal(t, 7.0, *r.Value)
	require.Nil(t, r.Ratio, "without a baseline")
	require.Nil(t, summarize("x", speed, "tcp", []pair{of(1, 0), of(2, 0), of(3, 1)}).Ratio, "of a baseline that is 0 in most pairs")
	require.Nil(t, summarize("x", speed, "tcp", nil).Value, "without anything")
}

func TestGoals(t *testing.T) {
	low, high := 0.9, 1.2
	for _, c := range []struct {
		g    goal
		r    row
		met  bool
		show string
	}{
		{ratioAtLeast("a", p50, 1), row{Ratio: &low}, false, ">= 1"},
		{ratioAtLeast("a", p50, 0.9), row{Ratio: &low}, true, ">= 0.9"},
		{ratioAtMost("a", p50, 1), row{Ratio: &high}, false, "<= 1"},
		{ratioAtMost("a", p50, 1), row{Ratio: &low, Value: &high}, true, "<= 1"},
		{valueAtMost("a", p50, 1), row{Ratio: &low, Value: &high}, false, "<= 1"},
		{valueAtMost("a", p50, 1), row{Ratio: &low}, false, "<= 1"}, // a value that is not known
	} {
		c.g.judge(&c.r)
		require.Equal(t, c.met, *c.r.Met, "%+v", c.g)
		require.Equal(t, c.show, c.r.target())
	}
}

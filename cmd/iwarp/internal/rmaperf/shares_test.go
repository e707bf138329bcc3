package rmaperf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recorded makes a record with a moment each millisecond, in which flow i moves rates(ms)[i] octets.
func recorded(ms int, rates func(ms int) [2]int64) (r record) {
	var sum [2]int64
	for t := range ms {
		r = append(r, moment{time.Second + time.Duration(t)*time.Millisecond, []int64{sum[0], sum[1]}})
		for i, n := range rates(t) {
			sum[i] += n
		}
	}
	return r
}

func TestShares(t *testing.T) {
	r := recorded(11, func(int) [2]int64 { return [2]int64{100, 300} })
	require.Equal(t, []float64{0.5, 1.5}, r.shares(0, 10))
	require.InDelta(t, 0.8, r.leastJain(10*time.Millisecond), 1e-9)
	require.InDelta(t, 400_000, r.rate(), 1e-6)
	require.Equal(t, [][]float64{{100_000, 300_000}, {100_000, 300_000}}, r.rates(5))
	require.Len(t, r.from(4*time.Millisecond), 7)
	require.Nil(t, r.from(time.Second))
	require.True(t, fair([]float64{0.8, 1.2}))
	require.False(t, fair([]float64{0.79, 1}))
	require.False(t, fair([]float64{1, 1.21}))
}

// TestSettled: flows have found their shares at the beginning of the first window that has them.
func TestSettled(t *testing.T) {
	const window = 10 * time.Millisecond
	after := func(ms int) record {
		return recorded(100, func(t int) [2]int64 {
			if t < ms {
				return [2]int64{0, 200}
			}
			return [2]int64{100, 100}
		})
	}
	at, ok := after(0).settled(window)
	require.True(t, ok)
	require.Zero(t, at)

	at, ok = after(30).settled(window)
	require.True(t, ok)
	require.Equal(t, 28*time.Millisecond, at, "two of ten are within 20 percent")

	_, ok = after(98).settled(window)
	require.False(t, ok, "no window is fair")

	_, ok = recorded(5, func(int) [2]int64 { return [2]int64{1, 1} }).settled(window)
	require.False(t, ok, "there is no window")
}

// TestFairIsToldInWords, even if the shares were never fair.
func TestFairIsToldInWords(t *testing.T) {
	require.Equal(t, "fair after 12 RTT", (&period{After: 12}).fair())
	require.Equal(t, "not fair within 500 RTT", (&period{After: -1}).fair())
}

// TestLeastJain: it is the index of the worst window.
func TestLeastJain(t *testing.T) {
	r := recorded(100, func(t int) [2]int64 {
		if t >= 50 && t < 60 {
			return [2]int64{0, 200}
		}
		return [2]int64{100, 100}
	})
	require.InDelta(t, 0.5, r.leastJain(10*time.Millisecond), 1e-9)
	require.InDelta(t, 0.8, r.leastJain(20*time.Millisecond), 1e-9, "half of the window")
	require.InDelta(t, 1, r[60:].leastJain(10*time.Millisecond), 1e-9)
}

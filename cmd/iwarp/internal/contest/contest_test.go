package contest

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

func TestCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used peer.Usage
		takes := func(name string, each time.Duration) *Contender {
			return &Contender{Name: name, Size: 100, Run: func(n int) error {
				d := time.Duration(n) * each
				time.Sleep(d)
				used = used.Plus(peer.Usage{CPU: d / 2, Mallocs: uint64(n)})
				return nil
			}}
		}
		fast, slow := takes("fast", time.Millisecond), takes("slow", 4*time.Millisecond)
		x := &Contest{Pairs: 3, Span: 100 * time.Millisecond, Usage: func() (peer.Usage, error) { return used, nil }}
		require.NoError(t, x.Compare(fast, slow))
		require.Len(t, slow.Samples, 3)
		require.InDelta(t, 0.25, slow.Against(fast, PerSecond), 1e-9)
		require.InDelta(t, 4, slow.Against(fast, Cost), 1e-9)
		require.InDelta(t, 0.25, slow.Against(fast, PerCore), 1e-9)
		require.InDelta(t, 1000, fast.Median(PerSecond), 1e-6)
		require.InDelta(t, 100e3, fast.Median(Rate), 1e-6)
		require.InDelta(t, 1, fast.Median(Allocs), 1e-9)
		fast.Samples[1].Used.Mallocs /= 2
		require.InDelta(t, 1, fast.Median(Allocs), 1e-9)
		require.InDelta(t, 0.5, fast.Least(Allocs), 1e-9)
		require.Equal(t, "fast: 0.00 GB/s, 500.00 us of the processors for an operation, 1.00 allocations", fast.String())
	})
}

func TestFailures(t *testing.T) {
	errBroken := errors.New("broken")
	none := func() (peer.Usage, error) { return peer.Usage{}, errBroken }
	x := &Contest{Pairs: 1, Usage: none}
	require.ErrorIs(t, x.Compare(&Contender{Run: func(int) error { return nil }}), errBroken)
	require.ErrorIs(t, x.Compare(&Contender{Run: func(int) error { return errBroken }}), errBroken)
}

// TestEndsCloseTheLastOneFirst, and then all others.
func TestEndsCloseTheLastOneFirst(t *testing.T) {
	var closed []int
	var all Ends
	for i := range 3 {
		all = append(all, func() error {
			closed = append(closed, i)
			return fmt.Errorf("end %d", i)
		})
	}
	require.EqualError(t, all.Close(), "end 2\nend 1\nend 0")
	require.Equal(t, []int{2, 1, 0}, closed)
	require.NoError(t, Ends{}.Close())
}

package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// gripped registers a region and returns it, and a function that reports whether it
// can be closed at once: nothing holds it.
func gripped(t *testing.T) (r *stag.Region, free func() bool) {
	table := stag.NewTable()
	r, err := table.Register(make([]byte, 8), stag.Options{Access: stag.LocalWrite})
	require.NoError(t, err)
	return r, func() bool { return table.Close(done(t), r) == nil }
}

func TestRDMAP_123_AGripHoldsWhatIsUnderWayAndNoMore(t *testing.T) {
	for _, n := range []int{1, 2, 3, gripHolds, gripHolds + 1, 1000} {
		r, free := gripped(t)
		other, otherFree := gripped(t)
		var taking, giving grip
		for range n {
			require.True(t, taking.take(r))
		}
		require.True(t, taking.take(other), "another region takes over")
		taking.letGo()
		for range n - 1 {
			giving.give(r)
		}
		giving.letGo()
		require.False(t, free(), "one of %d requests is not complete", n)
		giving.give(r)
		giving.give(other)
		giving.letGo()
		require.True(t, free(), "all %d requests are complete", n)
		require.True(t, otherFree())
	}
}

func TestRDMAP_123_AGripTakesNothingOfAnInvalidRegion(t *testing.T) {
	r, free := gripped(t)
	var g grip
	require.True(t, g.take(r))
	require.True(t, g.take(r), "now there are spare holds")
	require.False(t, free(), "but nothing is complete")
	require.False(t, g.take(r), "closing has begun, so that the region is invalid")
	g.letGo()
	g.give(r)
	g.give(r)
	g.letGo()
	require.True(t, free())
}

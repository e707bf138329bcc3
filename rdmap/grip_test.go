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
			taking.take(r)
		}
		taking.take(other) // another region takes over
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

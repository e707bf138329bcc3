package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// closable registers a region and returns it, and a function that reports whether it
// can be closed at once: nothing holds it.
func closable(t *testing.T) (r *stag.Region, free func() bool) {
	table := stag.NewTable()
	r, err := table.Register(make([]byte, 8), stag.Options{Access: stag.LocalWrite})
	require.NoError(t, err)
	return r, func() bool { return table.Close(done(t), r) == nil }
}

func TestRDMAP_123_HoldCacheHoldsWhatIsUnderWayAndNoMore(t *testing.T) {
	for _, n := range []int{1, 2, 3, cachedHolds, cachedHolds + 1, 1000} {
		r, free := closable(t)
		other, otherFree := closable(t)
		var held, released holdCache
		for range n {
			held.hold(r)
		}
		held.hold(other) // another region takes over
		held.flush()
		for range n - 1 {
			released.release(r)
		}
		released.flush()
		require.False(t, free(), "one of %d requests is not complete", n)
		released.release(r)
		released.release(other)
		released.flush()
		require.True(t, free(), "all %d requests are complete", n)
		require.True(t, otherFree())
	}
}

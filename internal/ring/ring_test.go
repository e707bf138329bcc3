package ring

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRingGrows: entries in use keep their numbers, even if the numbers wrap, and the old ring stays as it was.
func TestRingGrows(t *testing.T) {
	for _, from := range []uint64{0, 3, math.MaxUint64 - 1} {
		var r Ring[uint64]
		to := from
		for range 20 {
			if to-from == uint64(len(r)) {
				old := r
				r = r.Grown(4, from, to)
				if len(old) > 0 {
					require.Len(t, r, 2*len(old))
					*r.At(from) = from + 1
					require.Equal(t, from, *old.At(from))
					*r.At(from) = from
				}
			}
			*r.At(to) = to
			to++
		}
		require.Len(t, r, 32)
		for i := from; i != to; i++ {
			require.Equal(t, i, *r.At(i))
		}
	}
}

func TestRingIsAPowerOfTwoLong(t *testing.T) {
	require.Len(t, Ring[int](nil).Grown(5, 0, 0), 8)
	require.Len(t, Ring[int](nil).Grown(0, 0, 0), 1)
	require.Len(t, make(Ring[int], 4).Grown(4, 0, 0), 8)
}

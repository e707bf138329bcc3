package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHOST_14_Coverage: the runs cover exactly the set of octets.
func TestHOST_14_Coverage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 64
		var c coverage
		var set [size]bool
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			off := rapid.IntRange(0, size-1).Draw(t, "off")
			n := rapid.IntRange(0, min(20, size-off)).Draw(t, "n")
			require.NoError(t, c.add(off, n))
			for i := range n {
				set[off+i] = true
			}
			var want []run
			for i := range size {
				switch {
				case set[i] && (i == 0 || !set[i-1]):
					want = append(want, run{i, i + 1})
				case set[i]:
					want[len(want)-1].to++
				}
			}
			require.ElementsMatch(t, want, c.runs)
		}
		for n := range size + 1 {
			whole := true
			for i := range size {
				whole = whole && set[i] == (i < n)
			}
			require.Equal(t, whole || n == 0, c.whole(n))
		}
	})
}

// TestHOST_14_ScatteredData: a target cannot make the host's memory of runs grow without bound.
func TestHOST_14_ScatteredData(t *testing.T) {
	var c coverage
	for i := range maxRuns {
		require.NoError(t, c.add(2*i, 1))
	}
	require.ErrorIs(t, c.add(2*maxRuns, 1), errScattered)
	require.NoError(t, c.add(2*maxRuns-2, 2), "it is adjacent")
	require.NoError(t, c.add(1, 1))
	require.NoError(t, c.add(2*maxRuns+8, 1))
	require.Len(t, c.runs, maxRuns)
}

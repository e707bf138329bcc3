package commit_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// TestMisuse: sizes that no file has, limits of zero, and a function that panics.
func TestMisuse(t *testing.T) {
	_, err := commit.OpenFile(filepath.Join(t.TempDir(), "f"), &commit.FileOptions{Size: -1})
	require.ErrorContains(t, err, "f: a size of -1 octets")

	g, err := commit.NewGroup(math.MaxInt64, func() error { panic("by the program") })
	require.NoError(t, err)
	g.Touched(math.MaxInt64-1, 1)
	err = g.Flush(t.Context(), 0, math.MaxInt64)
	require.ErrorIs(t, err, commit.ErrDataLost)
	var panicked *stag.PanicError
	require.ErrorAs(t, err, &panicked)
	require.NoError(t, g.Close())
	require.NoError(t, g.Close(), "closing again is no error")

	n := 0
	for list := range commit.Split[commit.Region](1, 0, 3, 0, 0) {
		require.Len(t, list, 1)
		n++
	}
	require.Equal(t, 3, n)
}

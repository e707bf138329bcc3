package matrix

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMountCasesAreNamedOnceAndByRole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range mountCases {
		require.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		require.True(t, strings.HasSuffix(c.Name, "/"+string(c.Role)), c.Name)
		require.Positive(t, c.Limit, c.Name)
		require.Nil(t, c.Knobs, "%s: the cases of mounts have siw as it is", c.Name)
	}
	require.Len(t, TableOf(Mounts).Cases, len(mountCases))
	require.Nil(t, TableOf("tape"))
}

func TestWritePieces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, octets := range []int64{0, 1, 64 << 10, 200000} {
		require.NoError(t, writePieces(file, 3, octets, 64<<10))
		require.NoError(t, checkRandom(file, 3, octets))
	}
	require.Error(t, writePieces(filepath.Join(file, "none"), 3, 1, 1))
}

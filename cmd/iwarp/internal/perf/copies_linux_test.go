//go:build linux && !purego

package perf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// On other systems a net.Conn is given copies.
func TestARCH_39_CopiesAreCounted(t *testing.T) {
	sent, received, err := countCopies("")
	require.NoError(t, err)
	require.InDelta(t, 0, sent, 0.001, "the system gathers Writes from registered memory")
	require.InDelta(t, 1.05, received, 0.051, "once into place, and the seams of the reads")
}

package quota

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCountHoldsItsLimit: of many that take at the same time, exactly limit succeed, and one may take what another gives
// back.
func TestCountHoldsItsLimit(t *testing.T) {
	const limit = 5
	var c Count
	var taken atomic.Int32
	var takers sync.WaitGroup
	for range 2 * limit {
		takers.Go(func() {
			if c.Take(limit) {
				taken.Add(1)
			}
		})
	}
	takers.Wait()
	require.EqualValues(t, limit, taken.Load())
	require.Equal(t, limit, c.InUse())
	c.Give()
	require.Equal(t, limit-1, c.InUse())
	require.True(t, c.Take(limit))
	require.False(t, c.Take(limit))
	require.True(t, c.Take(limit+1), "the limit is the caller's")
}

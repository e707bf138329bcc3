package perf

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// brokenDriver is the driver of a connection that has ended.
type brokenDriver struct{ driver }

var errBroken = errors.New("broken")

func (brokenDriver) run(_ int, times []int64) ([]int64, error) { return times, errBroken }

// TestPairsTakeMemoryAsTheyCome: a flag may request more pairs than fit into memory.
func TestPairsTakeMemoryAsTheyCome(t *testing.T) {
	begun := 0
	p := pairing{pairs: math.MaxInt, begin: func(int) { begun++ }}
	_, err := p.alternate(&arm{d: brokenDriver{}}, nil)
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, 1, begun)
}

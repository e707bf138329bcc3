package quota

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDsDoNotComeAgain(t *testing.T) {
	var i IDs
	first := i.Next()
	require.NotZero(t, first)
	i.last.Store(math.MaxUint32)
	require.NotContains(t, []uint64{0, first}, i.Next(), "after 2^32 of them")
}

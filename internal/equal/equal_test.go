package equal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues(t *testing.T) {
	type slices struct{ s []int }
	x := &slices{}
	require.True(t, Values(x, x))
	require.True(t, Values(1, 1))
	require.False(t, Values(1, 2))
	require.False(t, Values(x, &slices{[]int{1}}))
	require.False(t, Values(slices{}, slices{}))
	require.False(t, Values(slices{}, nil))
}

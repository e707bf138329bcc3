package stats

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, Median([]float64{3, 1, 2}), "the middle one")
	require.Equal(t, 2.5, Median([]float64{4, 1, 3, 2}), "between the middle two")
	require.Equal(t, 0.0, Median(nil))
}

func TestQuantile(t *testing.T) {
	require.Equal(t, 2, Quantile([]int{3, 1, 2}, 50))
	require.Equal(t, 3, Quantile([]int{3, 1, 2}, 99))
	require.Equal(t, 1, Quantile([]int{1}, 100))
	require.Equal(t, 1, Quantile([]int{2, 1}, 0))
	require.Equal(t, 1, Quantile([]int{2, 1}, 50), "half of them do not exceed it")
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	require.Equal(t, 50, Quantile(hundred, 50))
	require.Equal(t, 99, Quantile(hundred, 99), "not the longest one")
	require.Equal(t, 100, Quantile(hundred, 100))
}

func TestJain(t *testing.T) {
	require.InDelta(t, 1, Jain([]float64{2, 2, 2, 2}), 1e-9, "all have the same")
	require.InDelta(t, 0.25, Jain([]float64{0, 5, 0, 0}), 1e-9, "one of four has all")
	require.InDelta(t, 0.9, Jain([]float64{1, 2}), 1e-9)
	require.Zero(t, Jain([]float64{0, 0}), "nothing was shared")
}

package commit

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	split := func(to, n uint64, regions int, octets uint64) [][]Region {
		return slices.Collect(Split[Region](7, to, n, regions, octets))
	}
	require.Empty(t, split(0, 0, 1, 1))
	require.Equal(t, [][]Region{{{7, 5, 3}}}, split(5, 3, 2, 10))
	require.Equal(t, [][]Region{{{7, 5, 10}}, {{7, 15, 1}}}, split(5, 11, 2, 10))
	const most = math.MaxUint32
	require.Equal(t, [][]Region{{{7, 0, most}, {7, most, most}}, {{7, 2 * most, 1}}}, split(0, 2*most+1, 2, math.MaxUint64))
	for range Split[Region](7, 0, 100, 1, 1) {
		break // and so it ends
	}
}

func TestAppendRequest(t *testing.T) {
	b, n := AppendRequest(nil, 9, []Region{{1, 2, 3}, {4, 5, 6}})
	require.Equal(t, (&Request{ID: 9, Regions: []Region{{1, 2, 3}, {4, 5, 6}}}).Append(nil), b)
	require.EqualValues(t, 9, n)
	b, n = AppendRequest[Region](nil, 9, nil)
	require.Equal(t, (&Request{ID: 9, Regions: []Region{{}}}).Append(nil), b)
	require.Zero(t, n)
}

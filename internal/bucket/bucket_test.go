package bucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestBucketFillsUp(t *testing.T) {
	var b Bucket
	require.InDelta(t, 3, b.Level(start, 10, 3), 0, "it is full at first")
	for range 3 {
		require.True(t, b.Take(start, 10, 3))
	}
	require.False(t, b.Take(start, 10, 3))
	require.False(t, b.Take(start.Add(99*time.Millisecond), 10, 3))
	require.True(t, b.Take(start.Add(100*time.Millisecond), 10, 3))
	require.InDelta(t, 3, b.Level(start.Add(time.Hour), 10, 3), 0, "no more than that")
	require.InDelta(t, 3, b.Level(start, 10, 3), 0, "a clock that went back changes nothing")
}

func TestBucketMayGoBelowZero(t *testing.T) {
	var b Bucket
	for left := 1.0; left > -5; left-- {
		require.InDelta(t, left, b.Charge(start, 1, 2), 0)
	}
	require.False(t, b.Take(start.Add(4*time.Second), 1, 2))
	require.True(t, b.Take(start.Add(5*time.Second), 1, 2))
}

func TestEmptyBucket(t *testing.T) {
	b := Empty(start.Add(time.Minute), 5)
	require.False(t, b.Take(start, 10, 5))
	require.False(t, b.Take(start.Add(time.Minute), 10, 5))
	require.True(t, b.Take(start.Add(time.Minute+100*time.Millisecond), 10, 5))
}

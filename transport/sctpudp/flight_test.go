package sctpudp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFlightOfTSNs goes around with the TSNs, and no SACK counts twice.
func TestFlightOfTSNs(t *testing.T) {
	for _, first := range []uint32{0, 5, 1<<31 - 3, 1 << 31, 1<<32 - 7, 1<<32 - 6, 1<<32 - 2} {
		f := flight{next: first}
		for n := range uint32(6) {
			require.True(t, f.sent(first+n, nil, int(n+1)))
			require.False(t, f.sent(first+n, nil, int(n+1)), "sent again")
		}
		acked := func(tsn uint32) (ok bool, octets int) {
			ok = f.acked(tsn, func(c sentChunk) { octets += c.octets })
			return ok, octets
		}
		for _, step := range []struct {
			last   uint32 // after first
			ok     bool
			octets int
		}{{6, false, 0}, {1, true, 3}, {0, false, 0}, {1, true, 0}, {4, true, 12}, {1, false, 0}, {5, true, 6}, {5, true, 0}, {6, false, 0}} {
			ok, octets := acked(first + step.last)
			require.Equal(t, step.ok, ok, "%d: %v", first, step)
			require.Equal(t, step.octets, octets, "%d: %v", first, step)
		}
		require.Zero(t, f.octets)
		require.False(t, f.has(first+5))
	}
}

// TestFlightWaitsForTheOldestChunk: what is sent later does not give the peer more time for it.
func TestFlightWaitsForTheOldestChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight{next: 1}
		require.Zero(t, f.waits())
		for tsn := range uint32(3) {
			require.True(t, f.sent(tsn+1, nil, 1))
			time.Sleep(time.Second)
		}
		require.Equal(t, 3*time.Second, f.waits())
		require.True(t, f.acked(0, nil), "nothing new")
		require.Equal(t, 3*time.Second, f.waits())
		require.True(t, f.acked(2, func(sentChunk) {}))
		require.Zero(t, f.waits())
		time.Sleep(time.Second)
		require.True(t, f.sent(4, nil, 1))
		require.Equal(t, time.Second, f.waits())
	})
}

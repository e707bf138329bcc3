package op

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var stale = Verdict{RemoteAuth, StaleEpoch}

func next(t *testing.T, x *Transfer, off uint64, n uint32) Chunk {
	t.Helper()
	c, ok := x.Next()
	require.True(t, ok)
	require.Equal(t, [2]uint64{off, uint64(n)}, [2]uint64{c.Off, uint64(c.N)})
	return c
}

func finished(t *testing.T, x *Transfer, n uint64, want Verdict) {
	t.Helper()
	got, why, ok := x.Finished()
	require.True(t, ok)
	require.Equal(t, n, got)
	require.Equal(t, want, why)
	_, ok = x.Next()
	require.False(t, ok)
}

func unfinished(t *testing.T, x *Transfer) {
	t.Helper()
	_, _, ok := x.Finished()
	require.False(t, ok)
}

func TestRMA_31_EachSizeArrivesWhole(t *testing.T) {
	const size = 4096
	var x Transfer
	for _, n := range []uint64{0, 1, size - 1, size, size + 1, 10<<20 + 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x.Reset(n, size, true)
			r := rand.New(rand.NewPCG(n, 0))
			var at uint64
			var flying []Chunk
			for {
				c, ok := x.Next()
				if ok {
					require.Equal(t, at, c.Off)
					require.Positive(t, c.N)
					require.LessOrEqual(t, c.N, uint32(size))
					at += uint64(c.N)
					flying = append(flying, c)
				}
				if len(flying) == 0 {
					break
				}
				unfinished(t, &x)
				if !ok || len(flying) == 16 { // in any order
					i := r.IntN(len(flying))
					require.False(t, x.Done(flying[i], Verdict{}))
					flying[i] = flying[len(flying)-1]
					flying = flying[:len(flying)-1]
				}
			}
			require.Equal(t, n, at)
			finished(t, &x, n, Verdict{})
		})
	}
}

func TestRMA_32_FirstFailureStopsTheOthers(t *testing.T) {
	var x Transfer
	x.Reset(500, 100, true)
	a, b, c := next(t, &x, 0, 100), next(t, &x, 100, 100), next(t, &x, 200, 100)
	require.False(t, x.Done(c, Verdict{Outcome: Timeout}))
	_, ok := x.Next()
	require.False(t, ok)
	unfinished(t, &x)
	require.False(t, x.Done(b, Verdict{Outcome: Bounds}))
	unfinished(t, &x)
	require.False(t, x.Done(a, Verdict{}))
	finished(t, &x, 100, Verdict{Outcome: Timeout})
}

func TestRMA_35_RefusedChunksAreRepeatedOnce(t *testing.T) {
	var x Transfer
	x.Reset(300, 100, true)
	a, b := next(t, &x, 0, 100), next(t, &x, 100, 100)
	require.True(t, x.Done(a, stale))
	require.False(t, x.Done(b, stale), "the region is opened once")
	_, ok := x.Next()
	require.False(t, ok, "before that nothing is begun")
	unfinished(t, &x)
	x.Reopened(Verdict{})
	unfinished(t, &x)
	b, a = next(t, &x, 100, 100), next(t, &x, 0, 100)
	require.False(t, x.Done(b, Verdict{}))
	require.False(t, x.Done(a, stale))
	finished(t, &x, 0, stale)
}

// TestRMA_35_StragglerIsRepeatedToo: it was begun with the old key, and is refused when the Transfer has the new
// one.
func TestRMA_35_StragglerIsRepeatedToo(t *testing.T) {
	var x Transfer
	x.Reset(200, 100, true)
	a, b := next(t, &x, 0, 100), next(t, &x, 100, 100)
	require.True(t, x.Done(a, stale))
	x.Reopened(Verdict{})
	require.False(t, x.Done(b, stale))
	for range 2 {
		unfinished(t, &x)
		c, ok := x.Next()
		require.True(t, ok)
		require.False(t, x.Done(c, Verdict{}))
	}
	finished(t, &x, 200, Verdict{})
}

func TestRMA_35_OnlyStaleKeysAreRepeated(t *testing.T) {
	for _, v := range []Verdict{{RemoteAuth, BadKey}, {NACK, QueueFull}, {Outcome: Timeout}, {NACK, StaleEpoch}} {
		var x Transfer
		x.Reset(100, 100, true)
		require.False(t, x.Done(next(t, &x, 0, 100), v))
		finished(t, &x, 0, v)
	}
	var x Transfer
	x.Reset(100, 100, false)
	require.False(t, x.Done(next(t, &x, 0, 100), stale))
	finished(t, &x, 0, stale)
}

func TestRMA_35_OpeningFails(t *testing.T) {
	var x Transfer
	x.Reset(300, 100, true)
	a, b, c := next(t, &x, 0, 100), next(t, &x, 100, 100), next(t, &x, 200, 100)
	require.False(t, x.Done(a, Verdict{}))
	require.True(t, x.Done(c, stale))
	require.False(t, x.Done(b, stale))
	x.Reopened(Verdict{RemoteAuth, BadKey})
	finished(t, &x, 100, Verdict{RemoteAuth, BadKey})
	x.Reopened(Verdict{})
	finished(t, &x, 100, Verdict{RemoteAuth, BadKey})

	// Another chunk fails before the region is open again.
	x.Reset(300, 100, true)
	a, b = next(t, &x, 0, 100), next(t, &x, 100, 100)
	require.True(t, x.Done(a, stale))
	require.False(t, x.Done(b, Verdict{Outcome: Timeout}))
	x.Reopened(Verdict{})
	finished(t, &x, 0, Verdict{Outcome: Timeout})
}

func TestRMA_44_TransferAllocatesNothing(t *testing.T) {
	var x Transfer
	x.Reset(0, 1, true)
	x.again = make([]Chunk, 0, 8)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		x.Reset(800, 100, true)
		a, _ := x.Next()
		x.Done(a, stale)
		x.Reopened(Verdict{})
		for c, ok := x.Next(); ok; c, ok = x.Next() {
			x.Done(c, Verdict{})
		}
	}))
}

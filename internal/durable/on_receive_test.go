package durable_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/stag"
)

// A counted is a Flusher that counts.
type counted struct{ flushes int }

func (c *counted) Flush(context.Context, int64, int64) error { c.flushes++; return nil }

// TestCMT_55_RegionThatIsBeingClosedIsDurableOnReceive: Close waits, and may fail. After it has succeeded, the Flusher
// may be gone.
func TestCMT_55_RegionThatIsBeingClosedIsDurableOnReceive(t *testing.T) {
	table, f := stag.NewTable(), new(counted)
	r, err := table.Register(make([]byte, 64), stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, Flusher: f})
	require.NoError(t, err)
	var all durable.OnReceive
	all.Add(r)
	require.NoError(t, all.Flush(1))
	require.Equal(t, 1, f.flushes)

	r.Hold() // like posted work
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, table.Close(ctx, r), context.Canceled)
	require.True(t, r.Closing())
	require.NoError(t, all.Flush(1))
	require.Equal(t, 2, f.flushes)

	r.Release()
	require.NoError(t, table.Close(t.Context(), r))
	require.NoError(t, all.Flush(1))
	require.Equal(t, 2, f.flushes)
}

// TestOnReceiveFlushesWhatAStreamCanWrite: the regions of all streams and the stream's own, but no others.
func TestOnReceiveFlushesWhatAStreamCanWrite(t *testing.T) {
	var all durable.OnReceive
	table := stag.NewTable()
	flushers, regions := make([]counted, 6), make([]*stag.Region, 6)
	for i := range regions {
		var err error
		regions[i], err = table.Register(make([]byte, 8), stag.Options{
			Access: stag.LocalWrite | stag.RemoteWrite, Scope: stag.Scope{Stream: uint64(i % 3)}, Flusher: &flushers[i],
		})
		require.NoError(t, err)
		all.Add(regions[i])
	}
	wants := func(stream uint64, want ...int) {
		t.Helper()
		clear(flushers)
		require.NoError(t, all.Flush(stream))
		for i := range flushers {
			require.Equal(t, want[i], flushers[i].flushes, "region %d", i)
		}
	}
	wants(1, 1, 1, 0, 1, 1, 0)
	wants(2, 1, 0, 1, 1, 0, 1)
	wants(7, 1, 0, 0, 1, 0, 0)
	all.Remove(regions[3])
	all.Remove(regions[1])
	all.Remove(regions[1])
	wants(1, 1, 0, 0, 0, 1, 0)
	all.Remove(regions[4])
	wants(1, 1, 0, 0, 0, 0, 0)
	all.Add(regions[1])
	wants(1, 1, 1, 0, 0, 0, 0)
	for _, r := range regions {
		all.Remove(r)
	}
	wants(1, 0, 0, 0, 0, 0, 0)
}

// TestOnReceiveOfManyRegions: adding a region does not copy the others.
func TestOnReceiveOfManyRegions(t *testing.T) {
	const n = 4000
	var all durable.OnReceive
	table, regions := stag.NewTable(), make([]*stag.Region, n)
	for i := range regions {
		var err error
		regions[i], err = table.Register(make([]byte, 8), stag.Options{
			Access: stag.LocalWrite | stag.RemoteWrite, Scope: stag.Scope{Stream: uint64(i % 2)}, Flusher: new(counted),
		})
		require.NoError(t, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, r := range regions {
		all.Add(r)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(n*8*16), "copies would be %d octets", n*n/2*8)
}

// BenchmarkFlushBesideOtherStreams measures a receive on one of many QPs, each of which has a region of its own.
func BenchmarkFlushBesideOtherStreams(b *testing.B) {
	var all durable.OnReceive
	table := stag.NewTable()
	for i := range 10_000 {
		r, err := table.Register(make([]byte, 8), stag.Options{
			Access: stag.LocalWrite | stag.RemoteWrite, Scope: stag.Scope{Stream: uint64(i + 1)}, Flusher: new(counted),
		})
		require.NoError(b, err)
		all.Add(r)
	}
	for b.Loop() {
		_ = all.Flush(1)
	}
}

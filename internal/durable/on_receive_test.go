package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/stag"
)

// A counted is a Flusher that counts.
type counted struct{ flushes int }

func (c *counted) Flush(context.Context, int64, int64) error { c.flushes++; return nil }

// TestCMT_55_RegionThatIsBeingClosedIsDurableOnReceive: its Close waits, and may fail. When it has succeeded the Flusher may be gone.
func TestCMT_55_RegionThatIsBeingClosedIsDurableOnReceive(t *testing.T) {
	table, f := stag.NewTable(), new(counted)
	r, err := table.Register(make([]byte, 64), stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, Flusher: f})
	require.NoError(t, err)
	var all durable.OnReceive
	all.Add(r)
	require.NoError(t, all.Flush(1))
	require.Equal(t, 1, f.flushes)

	r.Hold() // as work that was posted
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

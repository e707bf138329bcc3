package commit

import (
	"context"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGroupOfTheUser(t *testing.T) {
	var fails error
	syncs := 0
	g, err := NewGroup(64<<10, func() error { syncs++; return fails })
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, g.Flush(ctx, 0, 64<<10))
	require.Zero(t, syncs, "nothing has changed")

	g.Touched(8<<10, 1)
	require.NoError(t, g.Flush(ctx, 0, 4096))
	require.Zero(t, syncs, "what has changed is elsewhere")
	require.NoError(t, g.Flush(ctx, 0, 64<<10))
	require.NoError(t, g.Flush(ctx, 0, 64<<10))
	require.Equal(t, 1, syncs, "it has not changed since")

	g.Touched(0, 64<<10)
	fails = syscall.EIO
	require.ErrorIs(t, g.Flush(ctx, 0, 1), syscall.EIO)
	fails = nil
	require.ErrorIs(t, g.Flush(ctx, 60<<10, 1), ErrDataLost, "it was lost with the rest")
	g.Touched(60<<10, 1)
	require.NoError(t, g.Flush(ctx, 60<<10, 1), "it was written again")

	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Flush(ctx, 0, 1), fs.ErrClosed)
}

// TestGroupOfManyOctets: more than an int can hold on some processors.
func TestGroupOfManyOctets(t *testing.T) {
	for _, n := range []int64{1 << 31, 1 << 32} {
		g, err := NewGroup(2*n, func() error { return nil })
		require.NoError(t, err)
		ctx := context.Background()
		g.Touched(0, n)
		require.NoError(t, g.Flush(ctx, 0, 1))
		require.EqualValues(t, 1, g.Syncs())
		g.Wrote(g.Began(), n, n, nil)
		require.NoError(t, g.Flush(ctx, 2*n-1, 1))
		require.EqualValues(t, 2, g.Syncs())
	}
}

func TestGroupNeedsASync(t *testing.T) {
	_, err := NewGroup(0, func() error { return nil })
	require.ErrorContains(t, err, "needs octets")
	_, err = NewGroup(1, nil)
	require.ErrorContains(t, err, "needs octets")
}

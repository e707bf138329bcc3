package durable_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/durable"
	"github.com/goiwarp/iwarp/stag"
)

// TestCMT_13_GroupOfMemoryThatIsWrittenWhileASyncFails: the system may have dropped those octets, too.
func TestCMT_13_GroupOfMemoryThatIsWrittenWhileASyncFails(t *testing.T) {
	for _, through := range []bool{false, true} {
		var fails error
		g, err := commit.NewGroup(64<<10, func() error { return fails })
		require.NoError(t, err)
		o := stag.Options{Access: stag.LocalWrite | stag.RemoteWrite}
		require.NoError(t, durable.Options{By: g, WriteThrough: through}.Apply(&o, nil))
		r, err := stag.NewTable().Register(make([]byte, 64<<10), o)
		require.NoError(t, err)
		ctx := t.Context()

		g.Touched(32<<10, 1) // by the application
		began := r.Began()
		r.Bytes(0, 1)[0] = 1
		fails = syscall.EIO
		require.ErrorIs(t, g.Flush(ctx, 32<<10, 1), syscall.EIO)
		fails = nil
		r.MarkWritten(began, 0, 1)
		require.ErrorIs(t, r.Flusher().Flush(ctx, 0, 1), commit.ErrDataLost)
		require.NoError(t, r.Place(0, []byte{1}))
		require.NoError(t, r.Flusher().Flush(ctx, 0, 1), "written again")
	}
}

// TestCMT_13_16_FlushBeforeTheFlusherHasHeardOfAWrite: the Flush's success does not cover the octets of that write, so
// the next failure may have lost them.
func TestCMT_13_16_FlushBeforeTheFlusherHasHeardOfAWrite(t *testing.T) {
	f := new(hearing)
	o := stag.Options{Access: stag.LocalWrite | stag.RemoteWrite}
	require.NoError(t, durable.Options{By: f}.Apply(&o, nil))
	r, err := stag.NewTable().Register(make([]byte, 64<<10), o)
	require.NoError(t, err)
	ctx := t.Context()

	f.before = func() { require.NoError(t, r.Flusher().Flush(ctx, 0, 64<<10)) }
	require.NoError(t, r.Place(0, []byte{1}))
	f.fails = syscall.EIO
	require.ErrorIs(t, r.Flusher().Flush(ctx, 32<<10, 1), syscall.EIO)
	f.fails = nil
	require.ErrorIs(t, r.Flusher().Flush(ctx, 0, 1), commit.ErrDataLost)
}

// TestCMT_13_GroupInAFlusherOfTheUsers: the Group's own record of lost octets counts, and is updated when they are
// written again.
func TestCMT_13_GroupInAFlusherOfTheUsers(t *testing.T) {
	g, err := commit.NewGroup(64, func() error { return nil })
	require.NoError(t, err)
	f := &ownFlush{Group: g}
	o := stag.Options{Access: stag.LocalWrite | stag.RemoteWrite}
	require.NoError(t, durable.Options{By: f}.Apply(&o, nil))
	r, err := stag.NewTable().Register(make([]byte, 64), o)
	require.NoError(t, err)
	ctx := t.Context()

	require.NoError(t, r.Place(0, []byte{1}))
	f.fails = syscall.EIO
	require.ErrorIs(t, r.Flusher().Flush(ctx, 0, 1), syscall.EIO)
	f.fails = nil
	require.ErrorIs(t, r.Flusher().Flush(ctx, 0, 1), commit.ErrDataLost)
	require.NoError(t, r.Place(0, []byte{1}))
	require.NoError(t, r.Flusher().Flush(ctx, 0, 1))
}

// An ownFlush is a user's Flusher that contains a Group.
type ownFlush struct {
	*commit.Group
	fails error
}

func (f *ownFlush) Flush(ctx context.Context, off, n int64) error {
	if f.fails != nil {
		return f.fails
	}
	return f.Group.Flush(ctx, off, n)
}

// hearing is a Flusher of memory that makes durable the writes it was told of.
type hearing struct {
	before func() // it is told of a write
	fails  error
}

func (h *hearing) Touched(int64, int64) { h.before() }

func (h *hearing) Flush(context.Context, int64, int64) error { return h.fails }

package backend

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
)

func TestNVME_76_MemoryHasNoSpace(t *testing.T) {
	m, err := NewMemory(MemoryConfig{Size: 8 << 20, Cap: 2 << 20})
	require.NoError(t, err)
	p := fill(4096, 1)
	require.NoError(t, m.WriteAt(ctx, p, 0, false))
	require.NoError(t, m.WriteAt(ctx, p, 7<<20, false))
	require.EqualValues(t, 2<<20, m.Allocated())
	err = m.WriteAt(ctx, p, 4<<20, false)
	require.ErrorIs(t, err, ErrNoSpace)
	require.EqualError(t, err, "backend: write of 4096 octets at 4194304: no space left")
	requireZeros(t, m, 4<<20, 4096, "as before")
	require.NoError(t, m.WriteAt(ctx, p, 4096, false), "where there is memory")
	require.NoError(t, m.WriteZeroes(ctx, 4<<20, 1<<20, false, false), "zeros need none")
	require.NoError(t, m.WriteZeroes(ctx, 7<<20, 1<<20, false, false))
	require.EqualValues(t, 2<<20, m.Allocated(), "what is kept")
	require.NoError(t, m.Trim(ctx, 7<<20, 1<<20))
	require.EqualValues(t, 1<<20, m.Allocated(), "what is given back")
	require.NoError(t, m.WriteAt(ctx, p, 4<<20, false), "can be had by others")
	require.NoError(t, m.WriteZeroes(ctx, 4<<20, 1<<20, true, false))
	require.EqualValues(t, 1<<20, m.Allocated())
	require.NoError(t, m.Trim(ctx, 4096, 1<<20))
	require.EqualValues(t, 1<<20, m.Allocated(), "not a whole chunk")
	requireEqual(t, p, mustRead(t, m, 0, 4096), "what is outside of the range stays")
}

func TestNVME_76_ErrorsOfTheMedium(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind error
	}{
		{syscall.EIO, ErrWrite},
		{syscall.ENOSPC, ErrNoSpace},
		{syscall.EDQUOT, ErrNoSpace},
		{syscall.EFBIG, ErrNoSpace},
		{syscall.EROFS, ErrReadOnly},
	} {
		for _, through := range []bool{false, true} {
			f := newTestFake(t, FakeConfig{Through: through})
			for _, call := range []Call{CallWrite, CallWriteD, CallPunch, CallZero} {
				f.Inject(Fault{Call: call, Err: c.err})
			}
			for what, err := range map[string]error{
				"write": f.WriteAt(ctx, fill(4096, 1), 0, false),
				"FUA":   f.WriteAt(ctx, fill(4096, 1), 0, true),
				"trim":  f.Trim(ctx, 0, 4096),
				"zeros": f.WriteZeroes(ctx, 0, 4096, false, false),
				"unmap": f.WriteZeroes(ctx, 0, 4096, true, false),
			} {
				require.ErrorIs(t, err, c.kind, what)
				require.ErrorIs(t, err, c.err, what)
			}
			require.NoError(t, f.Flush(ctx), "a failed write does not fail the Backend")
		}
	}
}

func TestNVME_75_ReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	b, err := OpenFile(FileConfig{Path: path, Size: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, b.WriteAt(ctx, fill(4096, 1), 0, true))
	require.NoError(t, b.Close())
	for what, open := range map[string]func() (Backend, error){
		"file": func() (Backend, error) { return OpenFile(FileConfig{Path: path, ReadOnly: true}) },
		"mem":  func() (Backend, error) { return NewMemory(MemoryConfig{Size: 1 << 20, ReadOnly: true}) },
		"fake": func() (Backend, error) { return NewFake(FakeConfig{Size: 1 << 20, ReadOnly: true}) },
	} {
		t.Run(what, func(t *testing.T) {
			b, err := open()
			require.NoError(t, err)
			defer func() { require.NoError(t, b.Close()) }()
			require.True(t, b.ReadOnly())
			require.False(t, b.Volatile(), "there is nothing to lose")
			for _, fua := range []bool{false, true} {
				require.ErrorIs(t, b.WriteAt(ctx, make([]byte, 4096), 0, fua), ErrReadOnly)
				require.ErrorIs(t, b.WriteZeroes(ctx, 0, 4096, fua, fua), ErrReadOnly)
			}
			require.ErrorIs(t, b.Trim(ctx, 0, 4096), ErrReadOnly)
			require.ErrorIs(t, b.WriteAt(ctx, make([]byte, 4096), 1<<20, false), ErrOutOfRange, "that is looked at first")
			require.NoError(t, b.Flush(ctx))
			p := mustRead(t, b, 0, 4096)
			if what == "file" {
				requireEqual(t, fill(4096, 1), p, "what was there")
			}
		})
	}
}

func TestNVME_77_OneBackendOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	c := FileConfig{Path: path, Size: 1 << 20}
	b, err := OpenFile(c)
	require.NoError(t, err)
	_, err = OpenFile(c)
	require.ErrorIs(t, err, commit.ErrInUse)
	require.ErrorContains(t, err, path)
	_, err = OpenFile(FileConfig{Path: path, ReadOnly: true})
	require.ErrorIs(t, err, commit.ErrInUse)
	require.NoError(t, b.WriteAt(ctx, fill(4096, 1), 0, true), "the first one goes on")
	require.NoError(t, b.Close())
	b, err = OpenFile(FileConfig{Path: path})
	require.NoError(t, err, "it is free again")
	require.NoError(t, b.Close())
}

func TestDescribe(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		d := Describe(b)
		require.Positive(t, d.Granularity)
		require.Zero(t, d.Granularity%b.BlockSize())
		require.Equal(t, Traits{Granularity: b.BlockSize()}, Describe(struct{ Backend }{b}), "one that says nothing")
	})
}

package dirfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hugelgupf/p9/linux"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/sysfail"
)

// TestInterruptedCalls: signals to the server do not affect its clients.
func TestInterruptedCalls(t *testing.T) {
	desc, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, desc.Close()) }()
	for _, last := range []error{nil, unix.ENOSPC} {
		calls := 0
		err := control(desc, func(fd int) error {
			require.EqualValues(t, desc.Fd(), fd)
			if calls++; calls <= 3 {
				return unix.EINTR
			}
			return last
		})
		require.Equal(t, errno(last), err)
		require.Equal(t, 4, calls)
	}
}

// TestInterruptedSync: a sync reports its failure once, with any errno, and so no sync is repeated.
func TestInterruptedSync(t *testing.T) {
	desc, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	f := &file{}
	require.Equal(t, linux.EBADF, f.FSync(), "it is not open")
	f.opened.Store(&opening{desc: desc})
	require.NoError(t, f.FSync())
	require.Equal(t, linux.EINTR, sysfail.Run(t, unix.EINTR, f.FSync, unix.SYS_FSYNC))
	require.NoError(t, desc.Close())
	require.Equal(t, linux.EBADF, f.FSync(), "it is closed")
}

// TestCheck: without /proc, a server does not start.
func TestCheck(t *testing.T) {
	require.NoError(t, Check())
	nowhere := filepath.Join(t.TempDir(), "proc")
	err := check(nowhere)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/proc, which must be mounted: stat "+nowhere)
}

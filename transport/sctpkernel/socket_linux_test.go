//go:build !386

package sctpkernel

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSocketThatTheRuntimeCannotWatch is none: one that waited for it would look again and again. A plain file is refused as
// sockets are where the user has no epoll watch left.
func TestSocketThatTheRuntimeCannotWatch(t *testing.T) {
	fd, err := unix.Open(filepath.Join(t.TempDir(), "file"), unix.O_RDWR|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	require.NoError(t, err)
	_, err = newSocket(fd)
	require.ErrorContains(t, err, "epoll_ctl")
	require.ErrorIs(t, unix.Close(fd), unix.EBADF, "it is closed")
}

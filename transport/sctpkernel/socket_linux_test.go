//go:build !386

package sctpkernel

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testproc"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
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

// TestIdleSocketKeepsNoBuffer from the garbage collector either, when it has given it back: there may be many such sockets. One of
// another kind stands for that of SCTP.
func TestIdleSocketKeepsNoBuffer(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fds[1])
	s, err := newSocket(fds[0])
	require.NoError(t, err)
	defer s.close()
	_, err = s.receive(false)
	require.ErrorIs(t, err, transport.ErrAgain)
	require.Nil(t, s.in.m)
	require.Nil(t, s.in.iov.Base)
}

// TestListenerThatCanTakeNoAssociation reports why, until it takes one again. A stream socket replaces the SCTP socket, which the
// kernel may not support.
func TestListenerThatCanTakeNoAssociation(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{})) // the kernel chooses an address
	require.NoError(t, unix.Listen(fd, 1))
	at, err := unix.Getsockname(fd)
	require.NoError(t, err)
	peer, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	sock, err := newSocket(fd)
	require.NoError(t, err)

	var had unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &had))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: had.Max}))
	l := &Listener{sock: sock, backlog: sctp.NewBacklog(1, nil), open: make(map[*association]struct{})}
	l.running.Go(l.accept)
	defer l.End()
	require.Eventually(t, func() bool { return l.Outage() != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, l.Outage(), unix.EMFILE)
	_, err = l.Accept()
	require.ErrorIs(t, err, unix.EMFILE)

	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &had))
	require.NoError(t, unix.Connect(peer, at))
	require.NoError(t, unix.Close(peer))
	require.Eventually(t, func() bool { return l.Outage() == nil }, 10*time.Second, time.Millisecond)
}

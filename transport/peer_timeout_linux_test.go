package transport

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPeerTimeoutReachesTheSocket(t *testing.T) {
	a, b := tcpPair(t) // with 15 s by the options of both
	defer a.Close()
	defer b.Close()
	wantOptions(t, a, 15000, 1, 5, 2)
	wantOptions(t, b, 15000, 1, 5, 2)
	require.NoError(t, SetPeerTimeout(a, 500*time.Microsecond), "a tiny timeout is set")
	wantOptions(t, a, 1, 1, 1, 1)
	require.NoError(t, SetPeerTimeout(a, 1<<62), "a timeout beyond the system's numbers is set")
	require.NoError(t, SetPeerTimeout(a, 0), "the timeout is taken away")
	wantOptions(t, a, 0, 0, 0, 0)
	require.NoError(t, a.Close(), "closed")
	require.ErrorIs(t, SetPeerTimeout(a, time.Second), net.ErrClosed, "a closed connection has no options")
}

// TestPeerTimeoutOfASocketWithoutItsOptions: that is no failure. A socket of Multipath TCP has no TCP_USER_TIMEOUT, and one of
// OpenBSD no times of keep-alive probes; a Unix socket stands for both.
func TestPeerTimeoutOfASocketWithoutItsOptions(t *testing.T) {
	a, b := tcpPair(t)
	defer a.Close()
	defer b.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[1])
	raw, err := a.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var keepAlive int
	onSocket := func(f func(fd int) error) {
		require.NoError(t, raw.Control(func(fd uintptr) { err = f(int(fd)) }))
		require.NoError(t, err)
	}
	probes := func(fd int) (err error) {
		keepAlive, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		return err
	}
	onSocket(func(fd int) error { return unix.Dup3(pair[0], fd, unix.O_CLOEXEC) })
	require.NoError(t, unix.Close(pair[0]))
	require.ErrorIs(t, a.(*net.TCPConn).SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}), unix.EOPNOTSUPP, "it has no times")
	onSocket(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0) })

	require.NoError(t, SetPeerTimeout(a, 15*time.Second), "there is no such bound")
	onSocket(probes)
	require.Equal(t, 1, keepAlive, "probes come at times of the system")
	require.NoError(t, SetPeerTimeout(a, 0))
	onSocket(probes)
	require.Zero(t, keepAlive, "probes end")
}

// wantOptions holds the options of a socket against what is wanted; where there is
// no keep-alive its times do not matter.
func wantOptions(t *testing.T, c net.Conn, userTimeout, keepAlive, idle, interval int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err, "a socket")
	get := func(level, opt int) (v int) {
		require.NoError(t, raw.Control(func(fd uintptr) {
			v, err = unix.GetsockoptInt(int(fd), level, opt)
		}), "the socket is open")
		require.NoError(t, err, "the option is known")
		return v
	}
	require.Equal(t, userTimeout, get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT), "octets may stay unacknowledged for so long")
	require.Equal(t, keepAlive, get(unix.SOL_SOCKET, unix.SO_KEEPALIVE), "whether there are probes")
	if keepAlive != 0 {
		require.Equal(t, idle, get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), "probes begin after so long")
		require.Equal(t, interval, get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), "probes come so often")
	}
	require.Equal(t, 1, get(unix.IPPROTO_TCP, unix.TCP_NODELAY), "segments are sent at once")
}

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

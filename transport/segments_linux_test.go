//go:build linux && !purego

package transport

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// While the window of the peer is closed, the kernel gathers what is written. The batches must stay apart: MPA has
// chosen where they end.
func TestEachWriteBeginsASegment(t *testing.T) {
	const first, writes, size = 64 << 10, 300, 12
	s, far := pollerPair(t, newPoller(t))
	a, b := s.(*rawStream), far.(*rawStream)
	require.Zero(t, a.sock.eor, "it is not needed within a host")
	a.sock.eor = unix.MSG_EOR
	require.NoError(t, unix.SetsockoptInt(b.sock.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4096))
	before := segmentsSent(t, a)
	write(t, a, first)
	for range writes {
		write(t, a, size)
	}
	defer time.AfterFunc(20*time.Second, func() { _ = b.Abort() }).Stop()
	for left := first + writes*size; left > 0; {
		n, err := b.Read(make([]byte, min(left, 32<<10)), Park)
		require.NoError(t, err)
		left -= n
	}
	require.GreaterOrEqual(t, int(segmentsSent(t, a)-before), writes, "segments")
}

// TestOctetsOfAPartialWriteAreCounted: the EMSS is asked for again after so many octets.
func TestOctetsOfAPartialWriteAreCounted(t *testing.T) {
	s, _ := pollerPair(t, newPoller(t))
	n, err := s.Write([][]byte{make([]byte, 64<<20)}, false)
	require.Equal(t, ErrAgain, err)
	require.Positive(t, n)
	require.EqualValues(t, n, s.(*rawStream).mss.written.Load())
}

func TestWithinHost(t *testing.T) {
	for _, c := range []struct {
		local, remote string
		want          bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", true},
		{"127.0.0.1:1", "127.0.0.2:2", true},
		{"[::1]:1", "[::1]:2", true},
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"[2001:db8::1]:1", "[2001:db8::2]:1", false},
	} {
		l, r := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.local)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.remote))
		require.Equal(t, c.want, isWithinHost(l, r), "%v %v", l, r)
	}
}

// write writes n octets at once.
func write(t *testing.T, s *rawStream, n int) {
	t.Helper()
	written, err := s.Write([][]byte{make([]byte, n)}, false)
	require.NoError(t, err)
	require.Equal(t, n, written)
}

func segmentsSent(t *testing.T, s *rawStream) uint32 {
	t.Helper()
	i, err := unix.GetsockoptTCPInfo(s.sock.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	require.NoError(t, err)
	return i.Data_segs_out
}

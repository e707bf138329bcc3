package cm

import (
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// doesNotAnswer makes an address that answers no SYN: its connection queue is full.
func doesNotAnswer(t *testing.T, ip [4]byte, port string) {
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Port: n, Addr: ip}))
	require.NoError(t, syscall.Listen(fd, 0))
	c, err := net.Dial("tcp", net.JoinHostPort(netip.AddrFrom4(ip).String(), port))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
}

// TestAddressThatDoesNotAnswer: it takes its share of the target's time, in one attempt. The next address has the rest.
func TestAddressThatDoesNotAnswer(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	port := portOf(t, h.addr)
	doesNotAnswer(t, [4]byte{127, 0, 0, 2}, port)
	client := newEnd(t, iwarp.Limits{})
	_, resolver := newNameServer(t, func(string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}
	})
	const limit = 4 * time.Second
	_, all := collect(t, DialMany(t.Context(), func(yield func(Target) bool) {
		yield(Target{Network: "tcp", Addr: "host.iwarp.test.:" + port, Timeout: limit})
	}, &Options{RNIC: client.rnic, QP: client.config(), Resolver: resolver}))
	require.NoError(t, all[0].Err)
	require.Equal(t, 1, all[0].Attempts)
	require.Equal(t, StageReady, all[0].Stage)
	require.Greater(t, all[0].Times[StageDial], limit/4, "it was tried first")
}

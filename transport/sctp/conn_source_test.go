package sctp

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResolve(t *testing.T) {
	all, err := net.Interfaces()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	index, name := strconv.Itoa(all[0].Index), all[0].Name
	for host, want := range map[string]string{
		"192.0.2.1":         "192.0.2.1",
		"::ffff:192.0.2.1":  "192.0.2.1",
		"fd00::1":           "fd00::1",
		"fd00::1%" + name:   "fd00::1",
		"::1%" + index:      "::1",
		"fe80::1%" + name:   "fe80::1%" + name,
		"fe80::1%" + index:  "fe80::1%" + name,
		"fe80::1%999999999": "fe80::1%999999999",
	} {
		ip, err := Resolve(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, want, ip.String())
	}
	_, err = Resolve(t.Context(), "no such host")
	require.Error(t, err)
}

// TestNameOfSeveralAddresses stands for one of IPv4, if it has one that can be reached: a listener at the name is there.
func TestNameOfSeveralAddresses(t *testing.T) {
	six, four, mapped := netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")
	any := func(netip.Addr) bool { return true }
	require.Equal(t, four, favorite([]netip.Addr{six, four}, any))
	require.Equal(t, four, favorite([]netip.Addr{six, mapped}, any))
	require.Equal(t, six, favorite([]netip.Addr{six}, any))
	require.Equal(t, six, favorite([]netip.Addr{six, four}, netip.Addr.Is6), "a host without IPv4")
	require.Equal(t, four, favorite([]netip.Addr{four, six}, func(netip.Addr) bool { return false }), "the error tells of the first one")
}

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

// TestNameOfSeveralAddresses stands for one of IPv4, if it has one: a listener at the name is there.
func TestNameOfSeveralAddresses(t *testing.T) {
	six, four, mapped := netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")
	require.Equal(t, four, favorite([]netip.Addr{six, four}))
	require.Equal(t, four, favorite([]netip.Addr{six, mapped}))
	require.Equal(t, six, favorite([]netip.Addr{six}))
}

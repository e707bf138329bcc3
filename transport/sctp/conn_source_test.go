package sctp

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
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

// TestNameOfSeveralAddresses stands for an IPv4 address, if it has one that can be reached, because a listener at the name
// uses that address.
func TestNameOfSeveralAddresses(t *testing.T) {
	six, four, mapped := netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")
	reaches := func(is func(netip.Addr) bool) func(netip.Addr) (netip.Addr, error) {
		return func(to netip.Addr) (netip.Addr, error) {
			if is(to) {
				return to, nil
			}
			return netip.Addr{}, os.NewSyscallError("connect", syscall.ENETUNREACH)
		}
	}
	for _, c := range []struct {
		ips  []netip.Addr
		is   func(netip.Addr) bool
		want netip.Addr
		what string
	}{
		{[]netip.Addr{six, four}, netip.Addr.IsValid, four, "IPv4 first"},
		{[]netip.Addr{six, mapped}, netip.Addr.IsValid, four, "also where the resolver says it in IPv6"},
		{[]netip.Addr{six}, netip.Addr.IsValid, six, "no IPv4"},
		{[]netip.Addr{six, four}, netip.Addr.Is6, six, "a host without IPv4"},
		{[]netip.Addr{four, six}, func(netip.Addr) bool { return false }, four, "the error tells of the first one"},
	} {
		ip, err := favorite(c.ips, reaches(c.is))
		require.NoError(t, err, c.what)
		require.Equal(t, c.want, ip, c.what)
	}
	_, err := favorite([]netip.Addr{six, four}, func(netip.Addr) (netip.Addr, error) {
		return netip.Addr{}, os.NewSyscallError("socket", syscall.EMFILE)
	})
	require.ErrorIs(t, err, syscall.EMFILE, "it is not known that the first one of IPv4 cannot be reached")
}

package sctp

import (
	"net"
	"net/netip"
)

// Source is this machine's address on the way to a peer: the one that an association is
// made from (RFC 5043 section 7.2). It reports false if there is no way.
func Source(to netip.Addr) (netip.Addr, bool) {
	const any = 9
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, any)))
	if err != nil {
		return netip.Addr{}, false
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	from := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	return from.Unmap(), true
}

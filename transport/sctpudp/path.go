package sctpudp

import (
	"net"
	"net/netip"
)

const (
	udpHeaderSize = 8
	ip4HeaderSize = 20
	ip6HeaderSize = 40
	// minPath is what every path of IPv6 carries.
	minPath = 1280
)

// source is our address on the way to a peer.
func source(to netip.Addr) (netip.Addr, bool) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
	if err != nil {
		return netip.Addr{}, false
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	return unmap(c.LocalAddr()).Addr(), true
}

// packetSize is the largest SCTP packet that goes to a peer in one piece, as far as our
// own interface can tell, and that pion takes.
func packetSize(to netip.Addr) int {
	header := ip4HeaderSize + udpHeaderSize
	if to.Is6() {
		header = ip6HeaderSize + udpHeaderSize
	}
	mtu := minPath
	if from, ok := source(to); ok {
		mtu = max(mtu, interfaceMTU(from))
	}
	return min(mtu-header, maxPacket) &^ 3
}

// interfaceMTU is that of the interface with this address, 0 if there is none.
func interfaceMTU(of netip.Addr) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(of.AsSlice()) {
				return i.MTU
			}
		}
	}
	return 0
}

package sctpudp

import (
	"net"
	"net/netip"

	"github.com/goiwarp/iwarp/transport/sctp"
)

const (
	udpHeaderSize = 8
	ip4HeaderSize = 20
	ip6HeaderSize = 40
	// minPath is the MTU that every IPv6 path supports.
	minPath = 1280
)

// packetSize returns the size of the largest SCTP packet that pion accepts and that reaches a
// peer in one piece, as far as the MTU of our own interface shows.
func packetSize(to netip.Addr) int {
	header := ip4HeaderSize + udpHeaderSize
	if to.Is6() {
		header = ip6HeaderSize + udpHeaderSize
	}
	mtu := minPath
	if from, err := sctp.Source(to); err == nil { // otherwise the packets are small
		mtu = max(mtu, interfaceMTU(from))
	}
	return min(mtu-header, maxPacket) &^ 3
}

// interfaceMTU returns the MTU of the interface with this address, or 0 if there is none.
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

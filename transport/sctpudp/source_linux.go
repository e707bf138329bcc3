package sctpudp

import (
	"net"
	"net/netip"
	"syscall"
	"unsafe"
)

// hearAddresses makes the system report to which of our addresses a packet was sent. It reports false
// if the system cannot.
func hearAddresses(pc net.PacketConn) bool {
	heard := false
	control(pc, func(fd int) {
		// An IPv6 socket reports IPv4 packets in the IPv6 form, too.
		heard = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_RECVPKTINFO, 1) == nil ||
			syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_PKTINFO, 1) == nil
	})
	return heard
}

// The offsets of our address in a struct in_pktinfo and a struct in6_pktinfo.
const at4, at6 = 4, 0

// addressOf returns the address in the control message of a packet.
func addressOf(oob []byte) netip.Addr {
	head := syscall.CmsgLen(0)
	if len(oob) < head {
		return netip.Addr{}
	}
	h, info := (*syscall.Cmsghdr)(unsafe.Pointer(&oob[0])), oob[head:]
	switch {
	case h.Level == syscall.IPPROTO_IPV6 && h.Type == syscall.IPV6_PKTINFO && len(info) >= syscall.SizeofInet6Pktinfo:
		return netip.AddrFrom16([16]byte(info[at6:]))
	case h.Level == syscall.IPPROTO_IP && h.Type == syscall.IP_PKTINFO && len(info) >= syscall.SizeofInet4Pktinfo:
		return netip.AddrFrom4([4]byte(info[at4:]))
	}
	return netip.Addr{}
}

// leaveFrom returns the control message that sends a packet from one of our addresses.
func leaveFrom(at netip.Addr) []byte {
	level, kind, size, where := syscall.IPPROTO_IPV6, syscall.IPV6_PKTINFO, syscall.SizeofInet6Pktinfo, at6
	if at.Is4() {
		level, kind, size, where = syscall.IPPROTO_IP, syscall.IP_PKTINFO, syscall.SizeofInet4Pktinfo, at4
	}
	oob := make([]byte, syscall.CmsgSpace(size))
	h := (*syscall.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = int32(level), int32(kind)
	h.SetLen(syscall.CmsgLen(size))
	copy(oob[syscall.CmsgLen(where):], at.AsSlice())
	return oob
}

package pcap

import (
	"encoding/binary"
	"net/netip"
)

// Flags are the control bits of a TCP header.
type Flags uint8

// Control bits (RFC 9293 section 3.1).
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// A Segment is one TCP segment.
type Segment struct {
	Src, Dst netip.AddrPort // both IPv4 or both IPv6
	Seq, Ack uint32
	Flags    Flags
	Payload  []byte
	Missing  int // octets at the end of the payload that were not captured
}

// MaxPayload is the largest payload that Append can put into one packet: the IP
// length has 16 bits.
const MaxPayload = 65000

const (
	ipv4Len = 20
	ipv6Len = 40
	tcpLen  = 20
	protTCP = 6
	hops    = 64
)

// Append appends s as an IP packet with valid checksums.
func (s *Segment) Append(b []byte) []byte {
	src, dst := s.Src.Addr().Unmap(), s.Dst.Addr().Unmap()
	size := tcpLen + len(s.Payload)
	if src.Is4() && dst.Is4() {
		b = appendIPv4(b, src, dst, size)
	} else {
		b = appendIPv6(b, src, dst, size)
	}
	start := len(b)
	b = s.appendTCP(b)
	b = append(b, s.Payload...)

	// The pseudo header (RFC 9293 section 3.1): addresses, protocol, length.
	sum := sumAddr(src) + sumAddr(dst) + protTCP + uint32(size)
	binary.BigEndian.PutUint16(b[start+16:], checksum(sum, b[start:]))
	return b
}

func appendIPv4(b []byte, src, dst netip.Addr, size int) []byte {
	be := binary.BigEndian
	start := len(b)
	b = append(b, 0x45, 0) // version, header length in words; DSCP
	b = be.AppendUint16(b, uint16(ipv4Len+size))
	b = append(b, 0, 0, 0x40, 0) // identification; do not fragment
	b = append(b, hops, protTCP, 0, 0)
	b = append(b, src.AsSlice()...)
	b = append(b, dst.AsSlice()...)
	be.PutUint16(b[start+10:], checksum(0, b[start:]))
	return b
}

func appendIPv6(b []byte, src, dst netip.Addr, size int) []byte {
	b = append(b, 0x60, 0, 0, 0) // version, class, flow label
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	b = append(b, protTCP, hops)
	s, d := src.As16(), dst.As16()
	b = append(b, s[:]...)
	return append(b, d[:]...)
}

func (s *Segment) appendTCP(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, s.Src.Port())
	b = be.AppendUint16(b, s.Dst.Port())
	b = be.AppendUint32(b, s.Seq)
	b = be.AppendUint32(b, s.Ack)
	b = append(b, tcpLen/4<<4, byte(s.Flags))
	return append(b, 0xff, 0xff, 0, 0, 0, 0) // window, checksum, urgent pointer
}

// checksum returns the Internet checksum (RFC 1071) of b, starting with sum.
func checksum(sum uint32, b []byte) uint16 {
	total := uint64(sum) + uint64(sumWords(b))
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	return ^uint16(total)
}

// sumWords adds up 16-bit words; packets are too short to overflow it.
func sumWords(b []byte) (sum uint32) {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) > 0 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

func sumAddr(a netip.Addr) uint32 { return sumWords(a.AsSlice()) }

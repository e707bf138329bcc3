package pcap

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

var (
	errShort  = errors.New("pcap: packet is cut short")
	errNotTCP = errors.New("pcap: not a TCP segment")
)

// An IP is a captured IP packet.
type IP struct {
	Src, Dst netip.Addr
	Protocol uint8
	Fragment bool // the packet is a fragment: Payload is not examined
	Payload  []byte
	Missing  int // octets at the end that were not captured
}

// ErrNotIP: the packet is of another protocol.
var ErrNotIP = errors.New("pcap: not an IP packet")

// Parse parses a captured packet. The payload stays a part of data. Parse verifies no
// checksum: if checksums are offloaded, a capture has none.
func Parse(link LinkType, data []byte) (Segment, error) {
	ip, err := ParseIP(link, data)
	if errors.Is(err, ErrNotIP) {
		return Segment{}, errNotTCP
	}
	if err != nil {
		return Segment{}, err
	}
	if ip.Missing > 0 {
		return Segment{}, errShort
	}
	return ip.TCP()
}

// TCP parses the payload as a TCP segment.
func (p *IP) TCP() (Segment, error) {
	if p.Protocol != protTCP || p.Fragment {
		return Segment{}, errNotTCP
	}
	s, err := parseTCP(p.Src, p.Dst, p.Payload)
	s.Missing = p.Missing
	return s, err
}

// ParseIP parses a captured packet up to the IP header. The payload stays a part of data.
func ParseIP(link LinkType, data []byte) (IP, error) {
	b, err := stripLink(link, data)
	if err != nil {
		return IP{}, err
	}
	if len(b) == 0 {
		return IP{}, errShort
	}
	switch b[0] >> 4 {
	case 4:
		return parseIPv4(b)
	case 6:
		return parseIPv6(b)
	}
	return IP{}, ErrNotIP
}

// Known reports whether ParseIP supports the link type.
func (l LinkType) Known() bool {
	switch l {
	case LinkNull, LinkEthernet, LinkRaw, LinkLoop, LinkSLL, LinkIPv4, LinkIPv6, LinkSLL2:
		return true
	}
	return false
}

// stripLink returns the packet after the link header if it is an IP packet.
func stripLink(link LinkType, data []byte) ([]byte, error) {
	size, etherType := 0, 0 // length of the header, offset of the type within it
	switch link {
	case LinkRaw, LinkIPv4, LinkIPv6:
		return data, nil
	case LinkNull, LinkLoop: // a family, whose numbers differ between systems: the IP version decides
		const family = 4
		if len(data) < family {
			return nil, errShort
		}
		return data[family:], nil
	case LinkEthernet:
		size, etherType = 14, 12
	case LinkSLL:
		size, etherType = 16, 14
	case LinkSLL2:
		size, etherType = 20, 0
	default:
		return nil, ErrNotIP
	}
	if len(data) < size {
		return nil, errShort
	}
	typ, data := binary.BigEndian.Uint16(data[etherType:]), data[size:]
	for typ == 0x8100 || typ == 0x88a8 { // a VLAN tag: identifier (2), type of what follows (2)
		if len(data) < 4 {
			return nil, errShort
		}
		typ, data = binary.BigEndian.Uint16(data[2:]), data[4:]
	}
	if typ != 0x0800 && typ != 0x86dd {
		return nil, ErrNotIP
	}
	return data, nil
}

func parseIPv4(b []byte) (IP, error) {
	if len(b) < ipv4Len {
		return IP{}, errShort
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // the length of a segment still to be cut by the card
		total = len(b)
	}
	if header < ipv4Len || total < header || len(b) < header {
		return IP{}, errShort
	}
	p := IP{
		Src: netip.AddrFrom4([4]byte(b[12:16])), Dst: netip.AddrFrom4([4]byte(b[16:20])), Protocol: b[9],
		Fragment: binary.BigEndian.Uint16(b[6:])&0x3fff != 0,
	}
	p.cut(b[header:], total-header)
	return p, nil
}

// cut sets the payload, which has size octets, as far as it was captured.
func (p *IP) cut(b []byte, size int) {
	p.Payload = b[:min(size, len(b))]
	p.Missing = size - len(p.Payload)
}

// Headers that may follow that of IPv6 (RFC 8200 section 4).
const (
	hopByHop    = 0
	routing     = 43
	fragment    = 44
	destination = 60
)

func parseIPv6(b []byte) (IP, error) {
	if len(b) < ipv6Len {
		return IP{}, errShort
	}
	p := IP{Src: netip.AddrFrom16([16]byte(b[8:24])), Dst: netip.AddrFrom16([16]byte(b[24:40])), Protocol: b[6]}
	size := int(binary.BigEndian.Uint16(b[4:]))
	if size == 0 {
		size = len(b) - ipv6Len
	}
	p.cut(b[ipv6Len:], size)
	for {
		switch p.Protocol {
		case hopByHop, routing, destination, fragment:
		default:
			return p, nil
		}
		if len(p.Payload) < 8 {
			return IP{}, errShort
		}
		length := 8
		if p.Protocol != fragment {
			length += int(p.Payload[1]) * 8
		} else if binary.BigEndian.Uint16(p.Payload[2:])&^6 != 0 { // else the only fragment is all of the packet
			p.Fragment, p.Protocol = true, p.Payload[0]
			return p, nil
		}
		if len(p.Payload) < length {
			return IP{}, errShort
		}
		p.Protocol, p.Payload = p.Payload[0], p.Payload[length:]
	}
}

func parseTCP(src, dst netip.Addr, b []byte) (Segment, error) {
	if len(b) < tcpLen {
		return Segment{}, errShort
	}
	be := binary.BigEndian
	header := int(b[12]>>4) * 4
	if header < tcpLen || header > len(b) {
		return Segment{}, errShort
	}
	return Segment{
		Src:     netip.AddrPortFrom(src, be.Uint16(b)),
		Dst:     netip.AddrPortFrom(dst, be.Uint16(b[2:])),
		Seq:     be.Uint32(b[4:]),
		Ack:     be.Uint32(b[8:]),
		Flags:   Flags(b[13] & 0x1f),
		Payload: b[header:],
	}, nil
}

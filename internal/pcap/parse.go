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

// Parse takes a captured packet apart. The payload stays part of data. It verifies
// no checksum: where they are offloaded a capture has none.
func Parse(link LinkType, data []byte) (Segment, error) {
	ip, err := stripLink(link, data)
	if err != nil {
		return Segment{}, err
	}
	src, dst, tcp, err := parseIP(ip)
	if err != nil {
		return Segment{}, err
	}
	return parseTCP(src, dst, tcp)
}

// stripLink returns what follows the link's header if that is IP.
func stripLink(link LinkType, data []byte) ([]byte, error) {
	size, etherType := 0, 0 // length of the header, offset of the type within it
	switch link {
	case LinkRaw:
		return data, nil
	case LinkEthernet:
		size, etherType = 14, 12
	case LinkSLL:
		size, etherType = 16, 14
	case LinkSLL2:
		size, etherType = 20, 0
	default:
		return nil, errNotTCP
	}
	if len(data) < size {
		return nil, errShort
	}
	switch binary.BigEndian.Uint16(data[etherType:]) {
	case 0x0800, 0x86dd:
		return data[size:], nil
	}
	return nil, errNotTCP
}

func parseIP(b []byte) (src, dst netip.Addr, payload []byte, err error) {
	if len(b) == 0 {
		return src, dst, nil, errShort
	}
	switch b[0] >> 4 {
	case 4:
		return parseIPv4(b)
	case 6:
		return parseIPv6(b)
	}
	return src, dst, nil, errNotTCP
}

func parseIPv4(b []byte) (src, dst netip.Addr, payload []byte, err error) {
	if len(b) < ipv4Len {
		return src, dst, nil, errShort
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // the length of a segment still to be cut by the card
		total = len(b)
	}
	if header < ipv4Len || total < header || total > len(b) {
		return src, dst, nil, errShort
	}
	if b[9] != protTCP || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 { // a fragment
		return src, dst, nil, errNotTCP
	}
	src, dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	return src, dst, b[header:total], nil
}

func parseIPv6(b []byte) (src, dst netip.Addr, payload []byte, err error) {
	if len(b) < ipv6Len {
		return src, dst, nil, errShort
	}
	if b[6] != protTCP {
		return src, dst, nil, errNotTCP
	}
	size := int(binary.BigEndian.Uint16(b[4:]))
	if size == 0 {
		size = len(b) - ipv6Len
	}
	if size > len(b)-ipv6Len {
		return src, dst, nil, errShort
	}
	src, dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	return src, dst, b[ipv6Len : ipv6Len+size], nil
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

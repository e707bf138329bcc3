package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"
)

// The pcapng block types that are examined (draft-ietf-opsawg-pcapng sections 4.1 to 4.4).
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockSimple    = 3
	blockEnhanced  = 6

	sectionMagic = 0x1a2b3c4d

	blockEnds     = 12 // type and length, and the length again at the end
	maxBlock      = snapLen + 1<<16
	maxInterfaces = 1024

	optionResolution = 9 // of an interface
	optionOffset     = 14

	lastSecond = 1 << 37 // in the year 6325: later ones could have a year that RFC 3339 has no digits for
)

var errBlock = errors.New("a block of pcapng whose length cannot be")

// A blocks reads the packets of a pcapng capture.
type blocks struct {
	*source
	order      binary.ByteOrder
	interfaces []netInterface // of the section
}

type netInterface struct {
	link   LinkType
	snap   uint32
	unit   uint64 // of times, in parts of a second
	offset int64  // in seconds, which is added to times
}

// begin reads the header of a section; h is its beginning.
func (n *blocks) begin(h []byte) error {
	switch uint32(sectionMagic) {
	case binary.LittleEndian.Uint32(h[8:]):
		n.order = binary.LittleEndian
	case binary.BigEndian.Uint32(h[8:]):
		n.order = binary.BigEndian
	default:
		return fmt.Errorf("%w: its section header has the octets % x at octet %d", errFormat, h[8:12], n.at-int64(len(h))+8)
	}
	size := n.order.Uint32(h[4:])
	if size < uint32(len(h)) || size > maxBlock || size%4 != 0 {
		return fmt.Errorf("pcap: %w: %d", errBlock, size)
	}
	if _, err := n.read(make([]byte, int(size)-len(h))); err != nil {
		return fmt.Errorf("pcap: section header, which ends at octet %d: %w", n.at, within(err))
	}
	n.interfaces = nil
	return nil
}

// next reads blocks up to the next packet.
func (n *blocks) next() (Packet, error) {
	for {
		n.from = n.at
		kind, body, err := n.block()
		if err != nil {
			return Packet{}, err
		}
		switch kind {
		case blockInterface:
			err = n.addInterface(body)
		case blockEnhanced, blockSimple:
			return n.packet(kind, body)
		}
		if err != nil {
			return Packet{}, err
		}
	}
}

// block reads a block without its ends. For a block that is not examined it returns only the kind, however large it is.
func (n *blocks) block() (kind uint32, body []byte, err error) {
	var h [fileHeaderLen]byte
	if _, err := n.read(h[:8]); err != nil {
		return 0, nil, err
	}
	if binary.BigEndian.Uint32(h[:]) == blockSection {
		if _, err := n.read(h[8:]); err != nil {
			return 0, nil, within(err)
		}
		return blockSection, nil, n.begin(h[:])
	}
	kind, size := n.order.Uint32(h[:]), n.order.Uint32(h[4:])
	known := kind == blockInterface || kind == blockSimple || kind == blockEnhanced
	if size < blockEnds || known && size > maxBlock || size%4 != 0 {
		return 0, nil, fmt.Errorf("%w: %d", errBlock, size)
	}
	if !known {
		return kind, nil, within(n.skip(int64(size) - 8))
	}
	body = make([]byte, size-8)
	if _, err := n.read(body); err != nil {
		return 0, nil, within(err)
	}
	return kind, body[:len(body)-4], nil
}

func (n *blocks) addInterface(b []byte) error {
	if len(b) < 8 || len(n.interfaces) == maxInterfaces {
		return fmt.Errorf("%w: an interface of %d octets, after %d others", errBlock, len(b), len(n.interfaces))
	}
	i := netInterface{link: LinkType(n.order.Uint16(b)), snap: n.order.Uint32(b[4:]), unit: 1e6}
	for b = b[8:]; len(b) >= 4; {
		code, size := n.order.Uint16(b), int(n.order.Uint16(b[2:]))
		whole := 4 + (size+3)&^3
		if code == 0 || whole > len(b) {
			break
		}
		switch {
		case code == optionResolution && size == 1:
			i.unit = resolution(b[4])
		case code == optionOffset && size == 8:
			i.offset = int64(n.order.Uint64(b[4:]))
		}
		b = b[whole:]
	}
	n.interfaces = append(n.interfaces, i)
	return nil
}

// resolution returns how many units a second has: a power of 10, or, with the highest bit set, a power of 2. If it is
// too large to count with, times are taken for microseconds.
func resolution(b byte) uint64 {
	base, power := uint64(10), b&0x7f
	if b&0x80 != 0 {
		base = 2
	}
	unit := uint64(1)
	for range power {
		if unit > 1<<63/base {
			return 1e6
		}
		unit *= base
	}
	return unit
}

// time converts units to a time. It returns the zero time if no packet can have it: the units are then not from a clock.
func (i *netInterface) time(units uint64) time.Time {
	sec, rest := units/i.unit, units%i.unit
	if sec > lastSecond || i.offset > lastSecond || i.offset < -lastSecond {
		return time.Time{}
	}
	at := int64(sec) + i.offset
	if at < 0 || at > lastSecond {
		return time.Time{}
	}
	high, low := bits.Mul64(rest, uint64(time.Second))
	nano, _ := bits.Div64(high, low, i.unit) // rest is less than the unit
	return time.Unix(at, int64(nano))
}

// packet parses a block that contains a packet.
func (n *blocks) packet(kind uint32, b []byte) (Packet, error) {
	id, size, header := uint32(0), uint32(0), 4
	if kind == blockEnhanced {
		header = 20
	}
	if len(b) < header {
		return Packet{}, fmt.Errorf("%w: %d octets", errBlock, len(b))
	}
	if kind == blockEnhanced {
		id, size = n.order.Uint32(b), n.order.Uint32(b[12:])
	}
	if int64(id) >= int64(len(n.interfaces)) {
		return Packet{}, fmt.Errorf("interface %d, which the capture does not describe", id)
	}
	i := n.interfaces[id]
	p := Packet{Link: i.link}
	if kind == blockSimple {
		size = min(n.order.Uint32(b), uint32(len(b)-header))
		if i.snap != 0 {
			size = min(size, i.snap)
		}
	} else {
		p.Time = i.time(uint64(n.order.Uint32(b[4:]))<<32 | uint64(n.order.Uint32(b[8:])))
	}
	if int64(size) > int64(len(b)-header) {
		return Packet{}, fmt.Errorf("it has %d octets in a block of %d: %w", size, len(b), io.ErrUnexpectedEOF)
	}
	p.Data = b[header : header+int(size)]
	return p, nil
}

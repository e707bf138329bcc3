package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// PrivateSize is the length of the private data in octets.
const PrivateSize = 40

const (
	version  = 1
	maxSlots = 64 // in the table of a peer; librdmacm has 2
)

// Flags are the flags of the private data.
type Flags uint8

const (
	FlagNet   Flags = 1 << iota // the sender's host is big-endian
	FlagIOMap                   // the octet IOMap is valid, even if it is 0
)

// Order is the byte order of a host with these flags.
func (f Flags) Order() Order {
	if f&FlagNet != 0 {
		return Big
	}
	return Little
}

// A Table is where the peer writes slots.
type Table struct {
	Addr  uint64
	Key   uint32
	Slots uint32
}

// A Private is the private data of a Request or Reply.
type Private struct {
	Flags   Flags
	Credits uint16 // messages of data that may come before the first SGL
	IOMap   uint8  // entries of the iomap, scaled
	Table   Table
	Half    Slot // the first
}

// Append appends the private data, which is big-endian throughout:
//
//	version (1), flags (1), credits (2), zero (3), iomap (1),
//	sgl.addr (8), sgl.key (4), sgl.length (4), buf.addr (8), buf.key (4), buf.length (4)
func (p Private) Append(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, version, byte(p.Flags))
	b = be.AppendUint16(b, p.Credits)
	b = append(b, 0, 0, 0, p.IOMap)
	b = be.AppendUint64(b, p.Table.Addr)
	b = be.AppendUint32(b, p.Table.Key)
	b = be.AppendUint32(b, p.Table.Slots)
	return p.Half.Append(b, Big)
}

// ParsePrivate parses the private data of a peer, and refuses values with which no stream is possible. Octets
// behind it are ignored.
func ParsePrivate(b []byte) (Private, error) {
	if len(b) < PrivateSize {
		return Private{}, fmt.Errorf("%d octets of private data in place of %d", len(b), PrivateSize)
	}
	if b[0] != version {
		return Private{}, fmt.Errorf("version %d in place of %d", b[0], version)
	}
	be := binary.BigEndian
	p := Private{
		Flags:   Flags(b[1]),
		Credits: be.Uint16(b[2:]),
		IOMap:   b[7],
		Table:   Table{Addr: be.Uint64(b[8:]), Key: be.Uint32(b[16:]), Slots: be.Uint32(b[20:])},
		Half:    ParseSlot((*[SlotSize]byte)(b[24:PrivateSize]), Big),
	}
	if p.Flags&FlagIOMap == 0 {
		p.IOMap = 0
	}
	return p, p.check()
}

func (p *Private) check() error {
	table := Slot{Addr: p.Table.Addr, Length: p.Table.Slots * SlotSize}
	switch {
	case p.Credits == 0:
		return errors.New("private data with no credits")
	case p.Table.Slots == 0 || p.Table.Slots > maxSlots:
		return fmt.Errorf("a table of %d slots", p.Table.Slots)
	case p.Half.Length == 0:
		return errors.New("a first half without octets")
	case table.Check() != nil:
		return fmt.Errorf("a table of slots at %#x, beyond the last tagged offset", table.Addr)
	}
	return p.Half.Check()
}

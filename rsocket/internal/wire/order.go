package wire

import "encoding/binary"

// An Order is the byte order of messages and slots. The zero value is little-endian, the order of
// every host that matters.
type Order uint8

const (
	Little Order = iota
	Big
)

func (o Order) appendUint32(b []byte, v uint32) []byte {
	if o == Big {
		return binary.BigEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, v)
}

func (o Order) uint32(b []byte) uint32 {
	if o == Big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (o Order) appendUint64(b []byte, v uint64) []byte {
	if o == Big {
		return binary.BigEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, v)
}

func (o Order) uint64(b []byte) uint64 {
	if o == Big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

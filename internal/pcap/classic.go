package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A classic reads the packets of the classic format.
type classic struct {
	*source
	order binary.ByteOrder
	nano  bool
	link  LinkType
}

// newClassic reads the header of the file.
func newClassic(s *source, h []byte) (*classic, error) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		magic := order.Uint32(h)
		if magic == magicMicro || magic == magicNano {
			link := LinkType(order.Uint32(h[20:]) & 0xffff) // above it: the length of a checksum
			return &classic{source: s, order: order, nano: magic == magicNano, link: link}, nil
		}
	}
	return nil, fmt.Errorf("%w: it begins with % x at octet 0", errFormat, h[:4])
}

func (c *classic) next() (Packet, error) {
	c.from = c.at
	var h [recordHeaderLen]byte
	if _, err := c.read(h[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return Packet{}, io.EOF
		}
		return Packet{}, fmt.Errorf("its header: %w", err)
	}
	data, err := c.data(c.order.Uint32(h[8:]))
	if err != nil {
		return Packet{}, err
	}
	fraction := time.Duration(c.order.Uint32(h[4:]))
	if !c.nano {
		fraction *= time.Microsecond
	}
	return Packet{Time: time.Unix(int64(c.order.Uint32(h[:])), int64(fraction)), Link: c.link, Data: data}, nil
}

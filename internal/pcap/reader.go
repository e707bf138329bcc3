package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Reader reads a capture in either octet order.
type Reader struct {
	r     io.Reader
	order binary.ByteOrder
	nano  bool
	link  LinkType
}

// A Packet is one captured packet. Data begins with the header of the link.
type Packet struct {
	Time time.Time
	Data []byte
}

var errFormat = errors.New("pcap: not a classic capture file")

// NewReader reads the header of the file from r.
func NewReader(r io.Reader) (*Reader, error) {
	var h [fileHeaderLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, fmt.Errorf("pcap: file header: %w", err)
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		magic := order.Uint32(h[:])
		if magic != magicMicro && magic != magicNano {
			continue
		}
		link := LinkType(order.Uint32(h[20:]) & 0xffff) // above it: the length of a checksum
		return &Reader{r: r, order: order, nano: magic == magicNano, link: link}, nil
	}
	return nil, errFormat
}

// LinkType tells what packets begin with.
func (r *Reader) LinkType() LinkType { return r.link }

// Next reads one packet; io.EOF after the last.
func (r *Reader) Next() (Packet, error) {
	var h [recordHeaderLen]byte
	if _, err := io.ReadFull(r.r, h[:]); err != nil {
		if err == io.EOF {
			return Packet{}, io.EOF
		}
		return Packet{}, fmt.Errorf("pcap: packet header: %w", err)
	}
	size := r.order.Uint32(h[8:])
	if size > snapLen {
		return Packet{}, fmt.Errorf("pcap: a packet of %d octets", size)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r.r, data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // within a packet
		}
		return Packet{}, fmt.Errorf("pcap: packet: %w", err)
	}
	fraction := time.Duration(r.order.Uint32(h[4:]))
	if !r.nano {
		fraction *= time.Microsecond
	}
	return Packet{Time: time.Unix(int64(r.order.Uint32(h[:])), int64(fraction)), Data: data}, nil
}

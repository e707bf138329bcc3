package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Reader reads a capture, of the classic format or of pcapng, in either octet order.
type Reader struct {
	source source
	next   func() (Packet, error)
	number int // packets that were read
}

// NewReader reads the header of the file from r.
func NewReader(r io.Reader) (*Reader, error) {
	pr := &Reader{source: source{r: r}}
	var h [fileHeaderLen]byte
	if n, err := pr.source.read(h[:]); err != nil {
		return nil, fmt.Errorf("pcap: file header, which ends at octet %d: %w", n, err)
	}
	if binary.BigEndian.Uint32(h[:]) == blockSection {
		b := &blocks{source: &pr.source}
		pr.next = b.next
		return pr, b.begin(h[:])
	}
	c, err := newClassic(&pr.source, h[:])
	if err != nil {
		return nil, err
	}
	pr.next = c.next
	return pr, nil
}

// Next reads one packet, and returns io.EOF after the last one. An error names the packet and the octet of the file at
// which it begins.
func (r *Reader) Next() (Packet, error) {
	p, err := r.next()
	if errors.Is(err, io.EOF) {
		return Packet{}, io.EOF
	}
	r.number++
	if err != nil {
		return Packet{}, fmt.Errorf("pcap: packet %d at octet %d: %w", r.number, r.source.from, err)
	}
	p.Number, p.Offset = r.number, r.source.from
	return p, nil
}

package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Reader reads a capture, of the classic format or of pcapng, in either octet order.
type Reader struct {
	r     io.Reader
	order binary.ByteOrder
	nano  bool
	link  LinkType
	ng    *blocks // nil: the classic format

	at     int64 // octets that were read
	from   int64 // where the packet, or block, begins
	number int   // packets that were read
}

// A Packet is one captured packet. Data begins with the header of the link.
type Packet struct {
	Time   time.Time
	Link   LinkType
	Number int   // of the capture, from 1 on
	Offset int64 // where the packet's header is in the capture
	Data   []byte
}

var errFormat = errors.New("pcap: not a capture file")

// NewReader reads the header of the file from r.
func NewReader(r io.Reader) (*Reader, error) {
	pr := &Reader{r: r}
	var h [fileHeaderLen]byte
	if n, err := pr.read(h[:]); err != nil {
		return nil, fmt.Errorf("pcap: file header, which ends at octet %d: %w", n, err)
	}
	if binary.BigEndian.Uint32(h[:]) == blockSection {
		return pr, pr.begin(h[:])
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		magic := order.Uint32(h[:])
		if magic != magicMicro && magic != magicNano {
			continue
		}
		pr.order, pr.nano = order, magic == magicNano
		pr.link = LinkType(order.Uint32(h[20:]) & 0xffff) // above it: the length of a checksum
		return pr, nil
	}
	return nil, fmt.Errorf("%w: it begins with % x at octet 0", errFormat, h[:4])
}

// read fills b. An end that is not at its beginning is unexpected.
func (r *Reader) read(b []byte) (int, error) {
	n, err := io.ReadFull(r.r, b)
	r.at += int64(n)
	return n, err
}

// LinkType tells what packets begin with. In a capture of pcapng each Packet has its own.
func (r *Reader) LinkType() LinkType { return r.link }

// Next reads one packet; io.EOF after the last. An error names the packet and the octet of the file at which it
// begins.
func (r *Reader) Next() (Packet, error) {
	next := r.next
	if r.ng != nil {
		next = r.nextBlock
	}
	p, err := next()
	if err == io.EOF {
		return Packet{}, io.EOF
	}
	r.number++
	if err != nil {
		return Packet{}, fmt.Errorf("pcap: packet %d at octet %d: %w", r.number, r.from, err)
	}
	p.Number = r.number
	return p, nil
}

// next reads a packet of the classic format.
func (r *Reader) next() (Packet, error) {
	r.from = r.at
	var h [recordHeaderLen]byte
	if _, err := r.read(h[:]); err != nil {
		if err == io.EOF {
			return Packet{}, io.EOF
		}
		return Packet{}, fmt.Errorf("its header: %w", err)
	}
	data, err := r.data(r.order.Uint32(h[8:]))
	if err != nil {
		return Packet{}, err
	}
	fraction := time.Duration(r.order.Uint32(h[4:]))
	if !r.nano {
		fraction *= time.Microsecond
	}
	return Packet{Time: time.Unix(int64(r.order.Uint32(h[:])), int64(fraction)), Link: r.link, Offset: r.from, Data: data}, nil
}

// data reads the octets of a packet.
func (r *Reader) data(size uint32) ([]byte, error) {
	if size > snapLen {
		return nil, fmt.Errorf("it has %d octets, more than the %d that are possible", size, snapLen)
	}
	data := make([]byte, size)
	if n, err := r.read(data); err != nil {
		return nil, fmt.Errorf("%d of its %d octets are there: %w", n, size, within(err))
	}
	return data, nil
}

// within is the error of an end within a packet.
func within(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

package perf

import (
	"encoding/binary"
	"fmt"
	"io"
)

// An order opens a run on a connection of the tcp baseline. It goes to the server as
//
//	mode (1)  zero (3)  chunk (4)  size (4)  count (8)
//
// big endian. After the data of a mode that sends to the server comes one octet back.
type order struct {
	mode  byte
	chunk uint32 // octets of one call
	size  uint32 // octets of one message
	count uint64 // messages
}

const (
	modeSink     byte = 'w' // the client streams to the server
	modeSource   byte = 'r' // the server streams to the client
	modeDuplex   byte = 'd' // both
	modePingPong byte = 'p' // messages to and fro
	modeFetch    byte = 'f' // a request of fetchLen octets, then a message back
)

const (
	orderLen = 20
	fetchLen = 16
)

// write writes an order; b is scratch, so that nothing is allocated for it.
func (o *order) write(w io.Writer, b []byte) error {
	b = b[:orderLen]
	clear(b)
	b[0] = o.mode
	binary.BigEndian.PutUint32(b[4:], o.chunk)
	binary.BigEndian.PutUint32(b[8:], o.size)
	binary.BigEndian.PutUint64(b[12:], o.count)
	_, err := w.Write(b)
	return err
}

// read reads an order; b is scratch, so that nothing is allocated for it.
func (o *order) read(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b[:orderLen]); err != nil {
		return err
	}
	o.mode = b[0]
	o.chunk = binary.BigEndian.Uint32(b[4:])
	o.size = binary.BigEndian.Uint32(b[8:])
	o.count = binary.BigEndian.Uint64(b[12:])
	if o.chunk == 0 || o.chunk > maxSize || o.size == 0 || o.size > maxSize {
		return fmt.Errorf("chunk %d or size %d of an order is not within 1..%d", o.chunk, o.size, maxSize)
	}
	return nil
}

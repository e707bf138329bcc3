package pcap

import (
	"encoding/binary"
	"io"
	"time"
)

// A Writer writes a capture of raw IP packets with nanosecond times. It is not safe for
// concurrent use.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter writes the header of the file to w.
func NewWriter(w io.Writer) (*Writer, error) {
	le := binary.LittleEndian
	h := le.AppendUint32(nil, magicNano)
	h = le.AppendUint16(h, 2) // version 2.4
	h = le.AppendUint16(h, 4)
	h = le.AppendUint64(h, 0) // time zone and accuracy: never used
	h = le.AppendUint32(h, snapLen)
	h = le.AppendUint32(h, uint32(LinkRaw))
	if _, err := w.Write(h); err != nil {
		return nil, err
	}
	return &Writer{w: w}, nil
}

// ContinueWriter returns a Writer that appends to a file that NewWriter began.
func ContinueWriter(w io.Writer) *Writer { return &Writer{w: w} }

// WriteSegment writes one TCP segment as a packet captured at t, in one Write.
func (w *Writer) WriteSegment(t time.Time, s *Segment) error {
	le := binary.LittleEndian
	b := le.AppendUint32(w.buf[:0], uint32(t.Unix()))
	b = le.AppendUint32(b, uint32(t.Nanosecond()))
	b = le.AppendUint64(b, 0) // lengths, below
	b = s.Append(b)
	n := uint32(len(b) - recordHeaderLen)
	le.PutUint32(b[8:], n)  // captured
	le.PutUint32(b[12:], n) // on the wire
	w.buf = b
	_, err := w.w.Write(b)
	return err
}

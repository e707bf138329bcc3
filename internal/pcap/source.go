package pcap

import (
	"errors"
	"fmt"
	"io"
)

// A source counts the octets that are read from a capture.
type source struct {
	r    io.Reader
	at   int64 // octets that were read
	from int64 // where the packet, or block, begins
}

// read fills b. If the input ends after a part of b, the error is io.ErrUnexpectedEOF.
func (s *source) read(b []byte) (int, error) {
	n, err := io.ReadFull(s.r, b)
	s.at += int64(n)
	return n, err
}

// skip skips some octets.
func (s *source) skip(size int64) error {
	n, err := io.CopyN(io.Discard, s.r, size)
	s.at += n
	return err
}

// data reads the octets of a packet.
func (s *source) data(size uint32) ([]byte, error) {
	if size > snapLen {
		return nil, fmt.Errorf("it has %d octets, more than the %d that are possible", size, snapLen)
	}
	data := make([]byte, size)
	if n, err := s.read(data); err != nil {
		return nil, fmt.Errorf("%d of its %d octets are there: %w", n, size, within(err))
	}
	return data, nil
}

// within returns the error for an end within a packet.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

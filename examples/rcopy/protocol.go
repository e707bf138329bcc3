package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
)

// The commands. An answer also has the bit answer.
const (
	open   = 1
	closes = 2
	write  = 3
	answer = 0x80
)

const (
	headerSize = 16
	maxPath    = 4096
)

// A header begins each message. All its integers are in the byte order of the hosts, which is little-endian
// here:
//
//	version (1) = 0, command (1), length (2) of the message, data (4), id (8)
type header struct {
	command byte
	length  uint16 // including the header, but not the octets of a file
	data    uint32 // open: the mode of the file; of an answer: 0, or an errno of Linux
	id      uint64
}

func (h header) append(b []byte) []byte {
	b = append(b, 0, h.command)
	b = binary.LittleEndian.AppendUint16(b, h.length)
	b = binary.LittleEndian.AppendUint32(b, h.data)
	return binary.LittleEndian.AppendUint64(b, h.id)
}

// readHeader reads a header. At the end of the stream the error is io.EOF.
func readHeader(r io.Reader) (header, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	h := header{
		command: b[1],
		length:  binary.LittleEndian.Uint16(b[2:]),
		data:    binary.LittleEndian.Uint32(b[4:]),
		id:      binary.LittleEndian.Uint64(b[8:]),
	}
	if b[0] != 0 || h.length < headerSize {
		return header{}, fmt.Errorf("a message of version %d and %d octets", b[0], h.length)
	}
	return h, nil
}

// readBody reads the part of a message after its header, which must have between least and most octets.
func readBody(r io.Reader, h header, least, most int) ([]byte, error) {
	n := int(h.length) - headerSize
	if n < least || n > most {
		return nil, fmt.Errorf("command %d has %d octets", h.command, h.length)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, unexpected(err)
}

// unexpected returns err, or io.ErrUnexpectedEOF if err is io.EOF, for places where the stream must not end.
func unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull and io.CopyN do not wrap it
		return io.ErrUnexpectedEOF
	}
	return err
}

// Linux errnos, for answers.
const (
	noSuchFile = 2
	ioError    = 5
	invalid    = 22
)

// statusOf returns the errno of an error, or other if it has none, or one of another system.
func statusOf(err error, other uint32) uint32 {
	var errno syscall.Errno
	if runtime.GOOS == "linux" && errors.As(err, &errno) {
		return uint32(errno)
	}
	return other
}

func statusError(command byte, status uint32) error {
	return fmt.Errorf("the server answers command %d: %w", command, syscall.Errno(status))
}

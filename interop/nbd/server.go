package nbd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// A Medium is what a server serves. An error that wraps a syscall.Errno is sent to the
// client as that errno if the protocol has a number for it, and any other error as EIO.
type Medium interface {
	Size() int64
	ReadAt(p []byte, off int64) error
	WriteAt(p []byte, off int64, through bool) error
	Flush() error
}

// mostOctets is the longest request that is accepted: clients rely on it unless
// something else was agreed upon.
const mostOctets = 32 << 20

// The requests, and their flags.
const (
	cmdRead   = 0
	cmdWrite  = 1
	cmdDisc   = 2
	cmdFlush  = 3
	cmdTrim   = 4
	cmdZeroes = 6

	withFUA  = 1 << 0
	noHole   = 1 << 1
	fastZero = 1 << 4

	requestMagic = 0x25609513
	replyMagic   = 0x67446698
)

// Serve serves one client until it leaves, which is not an error, or the connection ends. It
// executes one request after the other, in order. At the end it closes the connection.
func Serve(c net.Conn, m Medium) error {
	defer c.Close() //nolint:errcheck // nothing is left to be sent
	s := &session{medium: m, r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10)}
	goOn, err := s.handshake()
	for goOn && err == nil {
		goOn, err = s.request()
	}
	return err
}

// A session is one client's connection.
type session struct {
	medium Medium
	r      *bufio.Reader
	w      *bufio.Writer
	buf    []byte
}

// A request is the header of a request.
type request struct {
	flags, kind uint16
	cookie      uint64
	off         int64
	n           int64
}

// request reads one request and answers it. goOn is false after the last one.
func (s *session) request() (goOn bool, err error) {
	var b [28]byte
	if _, err := io.ReadFull(s.r, b[:]); err != nil {
		return false, err
	}
	if binary.BigEndian.Uint32(b[:]) != requestMagic {
		return false, errors.New("nbd: no request")
	}
	q := request{
		flags:  binary.BigEndian.Uint16(b[4:]),
		kind:   binary.BigEndian.Uint16(b[6:]),
		cookie: binary.BigEndian.Uint64(b[8:]),
		off:    int64(binary.BigEndian.Uint64(b[16:])),
		n:      int64(binary.BigEndian.Uint32(b[24:])),
	}
	if q.kind == cmdDisc {
		return false, nil
	}
	data, err := s.payload(&q)
	if err != nil {
		return false, err
	}
	failed := s.do(&q, data)
	if failed != nil || q.kind != cmdRead {
		data = nil
	}
	return true, s.reply(q.cookie, failed, data)
}

// payload reads the octets of a Write, or returns room for those of a Read.
func (s *session) payload(q *request) ([]byte, error) {
	if q.kind != cmdRead && q.kind != cmdWrite {
		return nil, nil
	}
	if q.n > mostOctets {
		return nil, fmt.Errorf("nbd: a request of %d octets", q.n)
	}
	if int64(cap(s.buf)) < q.n {
		s.buf = make([]byte, q.n)
	}
	p := s.buf[:q.n]
	if q.kind == cmdWrite {
		if _, err := io.ReadFull(s.r, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// do executes a request; p holds its octets or room for them.
func (s *session) do(q *request, p []byte) error {
	if q.flags&^(withFUA|noHole|fastZero) != 0 {
		return syscall.EINVAL
	}
	if q.kind == cmdFlush {
		return s.medium.Flush()
	}
	size := s.medium.Size()
	if q.off < 0 || q.off > size || q.n > size-q.off || q.off%Sector != 0 || q.n%Sector != 0 {
		return syscall.EINVAL
	}
	through := q.flags&withFUA != 0
	switch {
	case q.kind == cmdRead:
		return s.medium.ReadAt(p, q.off)
	case q.kind == cmdWrite:
		return s.medium.WriteAt(p, q.off, through)
	case q.kind == cmdZeroes && q.flags&fastZero == 0:
		return s.zero(q.off, q.n, through)
	case q.kind == cmdZeroes:
		return syscall.EOPNOTSUPP
	case q.kind == cmdTrim: // may be taken for a hint
		return nil
	}
	return syscall.EINVAL
}

var zeroes [1 << 20]byte

func (s *session) zero(off, n int64, through bool) error {
	for n > 0 {
		m := min(n, int64(len(zeroes)))
		if err := s.medium.WriteAt(zeroes[:m], off, through); err != nil {
			return err
		}
		off, n = off+m, n-m
	}
	return nil
}

// reply answers a request. What is buffered leaves when no further request is there.
func (s *session) reply(cookie uint64, failed error, data []byte) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 16), replyMagic)
	b = binary.BigEndian.AppendUint32(b, number(failed))
	b = binary.BigEndian.AppendUint64(b, cookie)
	_, _ = s.w.Write(b) // a bufio.Writer keeps its error until Flush
	_, _ = s.w.Write(data)
	if s.r.Buffered() > 0 {
		return nil
	}
	return s.w.Flush()
}

// numbers are the errors that the protocol has a number for, but for EIO.
var numbers = map[syscall.Errno]uint32{syscall.EPERM: 1, syscall.EINVAL: 22, syscall.ENOSPC: 28, syscall.EOPNOTSUPP: 95}

// number is the protocol's number of an error.
func number(err error) uint32 {
	if err == nil {
		return 0
	}
	var no syscall.Errno
	if errors.As(err, &no) && numbers[no] != 0 {
		return numbers[no]
	}
	return 5 // EIO
}

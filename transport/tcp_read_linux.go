//go:build linux && !purego

package transport

import (
	"io"
	"syscall"
)

// reading is the state of one Read, here so that nothing is allocated for it.
type reading struct {
	buf []byte
	n   int
	e   syscall.Errno

	there residency
}

func (s *rawStream) Read(p []byte, wait Wait) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r := &s.read
	r.buf = p
	var err error
	switch {
	case wait == Block, wait == Park && s.in.reports: // an attempt before the wait would cost more than it finds
		err = s.in.wait(wait)
	case s.tryRead() || wait == NoWait:
		s.in.attempted(r.n)
	default:
		err = s.in.wait(wait)
	}
	r.buf = nil
	if err != nil {
		return 0, err
	}
	return s.haveRead(r.n, "read", r.e)
}

// tryRead makes one attempt; false: there is nothing yet.
func (s *rawStream) tryRead() bool {
	r := &s.read
	r.n, r.e = s.sock.recv(r.buf)
	return r.e != syscall.EAGAIN
}

// haveRead is what the outcome of a system call that reads means.
func (s *rawStream) haveRead(n int, call string, e syscall.Errno) (int, error) {
	switch {
	case e == syscall.EAGAIN:
		return 0, ErrAgain
	case e != 0:
		return 0, s.failed("read", call, e)
	case n == 0 && s.peer.timedOut(call, io.EOF) != io.EOF: //nolint:errorlint // it is given back as it is
		return 0, s.failed("read", call, syscall.ETIMEDOUT)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Scatter is Read with NoWait into bufs, one after the other.
func (s *rawStream) Scatter(bufs [][]byte) (int, error) {
	iov := iovecPool.Get()
	defer iovecPool.Put(iov)
	count := iov.fill(bufs, 0)
	defer clear(iov[:count])
	n, e := s.sock.readv(iov[:count], !s.read.there.covers(iov[:count])) // into a sink that may lie in a mapped file
	s.in.attempted(n)
	return s.haveRead(n, "recvmsg", e)
}

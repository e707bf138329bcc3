//go:build linux && !purego

package transport

import (
	"io"
	"syscall"
)

// reading is the state of a Read. It is part of the rawStream, so that a Read does not allocate.
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
	case wait == Block, wait == Park && s.in.reports: // an attempt before the wait would rarely succeed
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

// tryRead makes one attempt. It reports false if there is no input yet.
func (s *rawStream) tryRead() bool {
	r := &s.read
	r.n, r.e = s.sock.recv(r.buf)
	return r.e != syscall.EAGAIN
}

// haveRead returns the result of a Read for the outcome of its system call.
func (s *rawStream) haveRead(n int, call string, e syscall.Errno) (int, error) {
	switch {
	case e == syscall.EAGAIN:
		return 0, ErrAgain
	case e != 0:
		return 0, s.failed("read", call, e)
	case n == 0 && s.peer.timedOut(call, io.EOF) != io.EOF: //nolint:errorlint // timedOut returns it unchanged
		return 0, s.failed("read", call, syscall.ETIMEDOUT)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Scatter is Read with NoWait; it fills bufs in order.
func (s *rawStream) Scatter(bufs [][]byte) (int, error) {
	iov := iovecPool.Get()
	defer iovecPool.Put(iov)
	count := iov.fill(bufs, 0)
	defer clear(iov[:count])
	n, e := s.sock.readv(iov[:count], !s.read.there.covers(iov[:count])) // a buffer may lie in a mapped file
	s.in.attempted(n)
	return s.haveRead(n, "recvmsg", e)
}

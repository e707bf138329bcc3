//go:build linux && !purego

package transport

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// reading is the state of one Read, here so that nothing is allocated for it.
type reading struct {
	buf []byte
	iov [1]unix.Iovec // buf, for who sleeps
	n   int
	e   syscall.Errno

	there residency
}

func (s *rawStream) Read(p []byte, wait bool) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r := &s.read
	r.buf = p
	err := s.attempt(wait)
	r.buf = nil
	switch {
	case errors.Is(err, ErrWoken) && s.sock.closed():
		s.in.release()
		return 0, s.failed("read", "read", syscall.EBADF)
	case err != nil:
		return 0, err
	}
	return s.haveRead(r.n, "read", r.e)
}

// attempt reads, and with wait until that is not in vain.
func (s *rawStream) attempt(wait bool) error {
	if wait && (s.in.stands || lone.vacant()) {
		return s.in.wait()
	}
	found := s.tryRead(false)
	if found || !wait {
		s.in.brought(s.read.n)
		return nil
	}
	return s.in.wait()
}

// tryRead makes one attempt; false: there is nothing yet.
func (s *rawStream) tryRead(asleep bool) bool {
	r := &s.read
	if !asleep {
		r.n, r.e = s.sock.recv(r.buf)
		return r.e != syscall.EAGAIN
	}
	r.iov[0].Base = &r.buf[0]
	r.iov[0].SetLen(len(r.buf))
	r.n, r.e = s.sock.sleepRead(r.iov[:])
	r.iov[0].Base = nil
	return r.e != syscall.EINTR
}

// haveRead is what the outcome of a system call that reads means.
func (s *rawStream) haveRead(n int, call string, e syscall.Errno) (int, error) {
	switch {
	case e == syscall.EAGAIN:
		return 0, ErrAgain
	case e != 0:
		return 0, s.failed("read", call, e)
	case n == 0 && s.silence.mend(call, io.EOF) != io.EOF: //nolint:errorlint // it is given back as it is
		return 0, s.failed("read", call, syscall.ETIMEDOUT)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Scatter is Read without wait into bufs, one after the other.
func (s *rawStream) Scatter(bufs [][]byte) (int, error) {
	iov := iovecPool.Get()
	defer iovecPool.Put(iov)
	count := iov.fill(bufs, 0)
	defer clear(iov[:count])
	n, e := s.sock.readv(iov[:count], !s.read.there.covers(iov[:count])) // into a sink that may lie in a mapped file
	s.in.brought(n)
	return s.haveRead(n, "recvmsg", e)
}

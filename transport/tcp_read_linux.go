//go:build linux && !purego

package transport

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reading is the state of one Read, here so that nothing is allocated for it.
type reading struct {
	try    func(fd uintptr) bool
	buf    []byte
	wait   bool
	parked bool
	n      int
	err    error

	scatter func(fd uintptr) bool
	bufs    [][]byte
	iov     *iovecs
}

func (s *rawStream) Read(p []byte, wait bool) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r := &s.in
	r.buf, r.wait, r.parked, r.n, r.err = p, wait, false, 0, nil
	err := s.raw.Read(r.try)
	if r.parked {
		err = s.waker.unpark(err)
	}
	r.buf = nil
	if err != nil {
		return 0, err
	}
	return r.n, r.err
}

// tryRead makes one attempt; false parks, after which it is called again.
func (s *rawStream) tryRead(fd uintptr) bool {
	r := &s.in
	for {
		n, err := syscall.Read(int(fd), r.buf)
		switch err {
		case nil:
			if r.n = n; n == 0 {
				r.err = io.EOF
			}
			return true
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return !s.mayPark()
		}
		r.err = s.opError("read", "read", err)
		return true
	}
}

// mayPark reports whether the read shall park; if not, r.err says why.
func (s *rawStream) mayPark() bool {
	r := &s.in
	if !r.wait {
		r.err = ErrAgain
		return false
	}
	if !s.waker.park() {
		r.err = ErrWoken
		return false
	}
	r.parked = true
	return true
}

// Scatter is Read without wait into bufs, one after the other.
func (s *rawStream) Scatter(bufs [][]byte) (int, error) {
	r := &s.in
	r.bufs, r.n, r.err = bufs, 0, nil
	r.iov = iovecPool.Get().(*iovecs)
	err := s.raw.Read(r.scatter)
	iovecPool.Put(r.iov)
	r.iov, r.bufs = nil, nil
	if err != nil {
		return 0, err
	}
	return r.n, r.err
}

// tryScatter makes one attempt and never parks.
func (s *rawStream) tryScatter(fd uintptr) bool {
	r := &s.in
	count := r.iov.fill(r.bufs, 0)
	for {
		n, _, e := syscall.Syscall(unix.SYS_READV, fd, uintptr(unsafe.Pointer(&r.iov[0])), uintptr(count))
		switch {
		case e == 0 && n == 0:
			r.err = io.EOF
		case e == 0:
			r.n = int(n)
			raceRead(fd, r.iov[:count], r.n)
		case e == syscall.EINTR:
			continue
		case e == syscall.EAGAIN:
			r.err = ErrAgain
		default:
			r.err = s.opError("read", "readv", e)
		}
		clear(r.iov[:count])
		return true
	}
}

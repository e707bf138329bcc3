//go:build linux && !purego

package transport

import (
	"io"
	"syscall"
)

// reading is the state of one Read, here so that nothing is allocated for it.
type reading struct {
	try    func(fd uintptr) bool
	buf    []byte
	wait   bool
	parked bool
	n      int
	err    error
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

//go:build linux && !purego

package transport

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxIovecs   = 1024           // IOV_MAX of Linux
	maxGathered = 1<<20 + 16<<10 // octets a system call: beyond that nothing is gained
)

type iovecs [maxIovecs]unix.Iovec

// iovecPool lends the 16 KiB of an iovec array for the time of a Write, so that an
// idle connection has none.
var iovecPool = sync.Pool{New: func() any { return new(iovecs) }}

// writing is the state of one Write, here so that nothing is allocated for it.
type writing struct {
	try  func(fd uintptr) bool
	bufs [][]byte // not yet wholly out
	off  int      // octets of bufs[0] that are out
	wait bool
	iov  *iovecs
	n    int
	err  error
}

func (s *rawStream) Gather() int { return maxIovecs }

func (s *rawStream) Write(bufs [][]byte, wait bool) (int, error) {
	w := &s.out
	w.bufs, w.off, w.wait, w.n, w.err = bufs, 0, wait, 0, nil
	w.iov = iovecPool.Get().(*iovecs)
	err := s.raw.Write(w.try)
	iovecPool.Put(w.iov)
	w.iov, w.bufs = nil, nil
	s.mss.written.Add(uint64(w.n))
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// tryWrite writes until all is out or the socket takes no more; false parks, after
// which it is called again. The runtime's poller tells of edges only, so it parks
// after EAGAIN and never after a merely short write.
func (s *rawStream) tryWrite(fd uintptr) bool {
	w := &s.out
	for {
		count := w.iov.fill(w.bufs, w.off)
		if count == 0 {
			return true
		}
		raceWrite(w.iov[:count])
		n, _, e := syscall.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&w.iov[0])), uintptr(count))
		clear(w.iov[:count]) // a pooled array must keep nobody's memory alive
		switch e {
		case 0:
			w.advance(int(n))
		case syscall.EINTR:
		case syscall.EAGAIN:
			if w.wait {
				return false
			}
			w.err = ErrAgain
			return true
		default:
			w.err = s.opError("write", "writev", e)
			return true
		}
	}
}

// fill describes bufs from octet off of the first one on, as much as one call takes,
// and returns the number of entries: 0 if there is nothing.
func (v *iovecs) fill(bufs [][]byte, off int) int {
	count, room := 0, maxGathered
	for _, b := range bufs {
		b = b[off:]
		off = 0
		if len(b) == 0 {
			continue
		}
		if count == maxIovecs || room == 0 {
			break
		}
		n := min(len(b), room)
		v[count].Base = &b[0]
		v[count].SetLen(n)
		count++
		room -= n
	}
	return count
}

// advance drops n octets that are out.
func (w *writing) advance(n int) {
	w.n += n
	n += w.off
	for len(w.bufs) > 0 && n >= len(w.bufs[0]) {
		n -= len(w.bufs[0])
		w.bufs = w.bufs[1:]
	}
	w.off = n
}

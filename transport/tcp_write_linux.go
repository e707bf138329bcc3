//go:build linux && !purego

package transport

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/freelist"
)

const (
	maxIovecs   = 1024           // IOV_MAX of Linux
	maxGathered = 1<<20 + 16<<10 // octets per system call; more gains nothing
)

type iovecs [maxIovecs]unix.Iovec

// iovecPool holds the iovec arrays, of 16 KiB, that are used during a Write or a Scatter, so
// that an idle connection has none.
var iovecPool = freelist.List[iovecs]{Retain: 8, New: func() *iovecs { return new(iovecs) }}

func (s *rawStream) Gather() int { return maxIovecs }

// writing is the state of a Write. It is part of the rawStream, so that a Write does not allocate.
type writing struct {
	bufs  [][]byte // buffers that are not completely written
	off   int      // octets of bufs[0] that are written
	iov   *iovecs
	n     int
	e     syscall.Errno
	told  bool // the scheduler is to be told of the calls, until a Write succeeds
	there residency
}

func (s *rawStream) Write(bufs [][]byte, wait bool) (int, error) {
	w := &s.write
	w.bufs, w.off, w.n = bufs, 0, 0
	w.iov = iovecPool.Get()
	var err error
	if !s.tryWrite() {
		err = ErrAgain
		if wait {
			s.peer.wrote()
			err = s.out.wait(Park)
		}
	}
	iovecPool.Put(w.iov)
	w.iov, w.bufs = nil, nil
	w.told = w.told && err != nil
	s.mss.written.Add(uint64(w.n))
	s.peer.wrote()
	if err == nil && w.e != 0 {
		err = s.failed("write", "sendmsg", w.e)
	}
	return w.n, err
}

// tryWrite writes until everything is written, or a call fails. It reports false if the socket
// accepts no more at the moment.
func (s *rawStream) tryWrite() bool {
	w := &s.write
	for {
		count := w.iov.fill(w.bufs, w.off)
		if count == 0 {
			w.e = 0
			return true
		}
		iov := w.iov[:count]
		n, e := s.sock.writev(iov, w.told || isLong(iov) && !w.there.covers(iov))
		w.e = e
		clear(iov) // so that the array in the pool does not keep the caller's memory alive
		if e != 0 {
			return e != syscall.EAGAIN
		}
		w.advance(n)
	}
}

// fill makes entries for bufs, beginning at octet off of the first, as far as one system call
// accepts them. It returns the number of entries: 0 if there are no octets.
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

// advance drops n octets that were written.
func (w *writing) advance(n int) {
	w.n += n
	n += w.off
	for len(w.bufs) > 0 && n >= len(w.bufs[0]) {
		n -= len(w.bufs[0])
		w.bufs = w.bufs[1:]
	}
	w.off = n
}

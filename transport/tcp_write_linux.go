//go:build linux && !purego

package transport

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/freelist"
)

const (
	maxIovecs   = 1024           // IOV_MAX of Linux
	maxGathered = 1<<20 + 16<<10 // octets a system call: beyond that nothing is gained
)

type iovecs [maxIovecs]unix.Iovec

// iovecPool lends the 16 KiB of an iovec array for the time of a Write, so that an
// idle connection has none.
var iovecPool = freelist.List[iovecs]{Retain: 8, New: func() *iovecs { return new(iovecs) }}

func (s *rawStream) Gather() int { return maxIovecs }

// writing is the state of one Write, here so that nothing is allocated for it.
type writing struct {
	bufs  [][]byte // not yet wholly out
	off   int      // octets of bufs[0] that are out
	iov   *iovecs
	n     int
	e     syscall.Errno
	told  bool // the scheduler is to be told, until all of a Write is out
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

// tryWrite writes until all is out, or something is wrong; false: the socket takes no
// more for now.
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
		clear(iov) // a pooled array must keep no memory of a caller alive
		if e != 0 {
			return e != syscall.EAGAIN
		}
		w.advance(n)
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

//go:build linux && !purego

package transport

import (
	"errors"
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
var iovecPool = freelist.List[iovecs]{Keep: 8, New: func() *iovecs { return new(iovecs) }}

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
	for found := s.tryWrite(false); !found; {
		if !wait {
			err = ErrAgain
			break
		}
		s.silence.wrote()
		err = s.out.wait()
		found = !errors.Is(err, ErrWoken) // only Close wakes a writer
	}
	s.out.release()
	iovecPool.Put(w.iov)
	w.iov, w.bufs = nil, nil
	w.told = w.told && err != nil
	s.mss.written.Add(uint64(w.n))
	s.silence.wrote()
	if err == nil && w.e != 0 {
		err = s.failed("write", "sendmsg", w.e)
	}
	return w.n, err
}

// tryWrite writes until all is out, or something is wrong; false: the socket takes no
// more for now.
func (s *rawStream) tryWrite(asleep bool) bool {
	w := &s.write
	for {
		count := w.iov.fill(w.bufs, w.off)
		if count == 0 {
			w.e = 0
			return true
		}
		n := s.writeOnce(w.iov[:count], asleep)
		clear(w.iov[:count]) // a pooled array must keep nobody's memory alive
		if w.e != 0 {
			return w.e != syscall.EAGAIN && w.e != syscall.EINTR
		}
		w.advance(n)
	}
}

// writeOnce makes one system call, and returns how many octets it took.
func (s *rawStream) writeOnce(iov []unix.Iovec, asleep bool) (n int) {
	if asleep {
		n, s.write.e = s.sock.sleepWrite(iov)
	} else {
		n, s.write.e = s.sock.writev(iov, s.write.told || isLong(iov) && !s.write.there.covers(iov))
	}
	return n
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

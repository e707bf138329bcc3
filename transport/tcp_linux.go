//go:build linux && !purego

package transport

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// rawStream drives a TCP socket by raw system calls. Each call tries first and
// parks in the runtime's poller only if there is nothing to do.
type rawStream struct {
	conn  *net.TCPConn
	raw   syscall.RawConn
	waker waker
	in    reading
	out   writing
	mss   mssCache
	watch watch
}

// newRawStream returns nil if the connection has no descriptor any more.
func newRawStream(c *net.TCPConn, p *Poller) Stream {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	s := &rawStream{conn: c, raw: raw, waker: waker{conn: c}}
	s.in.try = s.tryRead // made once: a closure per call would be allocated
	s.in.scatter = s.tryScatter
	s.out.try = s.tryWrite
	s.mss.ask = s.mss.query
	s.watch.init(p, raw)
	return s
}

func (s *rawStream) SetDeadline(t time.Time) error { return s.conn.SetDeadline(t) }

func (s *rawStream) Arm(ready func()) bool { return s.watch.arm(ready) }
func (s *rawStream) Disarm()               { s.watch.disarm() }
func (s *rawStream) Wake()                 { s.waker.wake() }

func (s *rawStream) CloseWrite() error { return s.conn.CloseWrite() }

// Close closes the socket. A reader that is armed is made ready, and learns it.
func (s *rawStream) Close() error {
	err := s.conn.Close()
	s.watch.release()
	return err
}

func (s *rawStream) Abort() error {
	err := abort(s.conn)
	s.watch.release()
	return err
}

func (s *rawStream) Secure() bool         { return false }
func (s *rawStream) LocalAddr() net.Addr  { return s.conn.LocalAddr() }
func (s *rawStream) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// opError dresses the error of a system call as package net does.
func (s *rawStream) opError(op, call string, err error) error {
	return &net.OpError{
		Op: op, Net: "tcp", Source: s.conn.LocalAddr(), Addr: s.conn.RemoteAddr(),
		Err: os.NewSyscallError(call, err),
	}
}

// mssEvery is after how many octets written the maximum segment size is asked for
// again: often enough to follow the path, and a system call per mebibyte is not
// felt.
const mssEvery = 1 << 20

type mssCache struct {
	size    atomic.Int64
	asked   atomic.Uint64 // what written was then
	written atomic.Uint64
	ask     func(fd uintptr) // query, made once so that asking does not allocate
}

// EMSS is what the kernel now puts into one segment: the peer's MSS, the path MTU
// and the TCP options are all taken into account. It is asked for again after each
// mebibyte written.
func (s *rawStream) EMSS() int {
	m := &s.mss
	written := m.written.Load()
	if m.size.Load() == 0 || written-m.asked.Load() >= mssEvery {
		m.asked.Store(written)
		_ = s.raw.Control(m.ask) // fails on a closed connection: the former answer stays
	}
	return int(m.size.Load())
}

// query asks the kernel.
func (m *mssCache) query(fd uintptr) {
	if v, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG); err == nil {
		m.size.Store(int64(v))
	}
}

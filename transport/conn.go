package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/freelist"
)

// NewStream makes a Stream of a connection, which it owns from now on. p, which
// may be nil, is the Poller that it waits with.
//
// A *net.TCPConn on Linux with a Poller is driven by raw system calls once it is detached (see
// [Detach]): many buffers leave in one writev, nothing is allocated per call, and Arm
// works. Only this exact type is: a type that embeds it would be bypassed. Every
// other connection (TLS, a pipe, a wrapper, any system but Linux, or the build tag
// purego) is driven through its methods: Read and Write work with wait only, Arm
// reports false. Wake needs SetReadDeadline of such a connection to interrupt a
// Read; a TLS handshake must have ended before (see [TLSClient]).
func NewStream(c net.Conn, p *Poller) Stream {
	if t, ok := c.(*net.TCPConn); ok {
		if s := newRawStream(t, p); s != nil {
			return s
		}
	}
	return NewPlainStream(c, p)
}

// NewPlainStream makes a Stream that drives every connection through its methods, a
// *net.TCPConn included: for where system calls of this package's own are not wanted. All p,
// which may be nil, does for it is to watch over the peer (see [SetPeerTimeout]).
func NewPlainStream(c net.Conn, p *Poller) Stream {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetNoDelay(true) // segments are whole; a failure shows in the first read
	}
	return &connStream{conn: c, waker: waker{conn: c}, peer: peerWatchOf(c, p)}
}

// connStream drives any net.Conn through its methods.
type connStream struct {
	conn  net.Conn
	waker waker
	peer  *peerWatch // nil: the system's own bounds hold
}

func (s *connStream) Read(p []byte, wait Wait) (int, error) {
	if wait == NoWait {
		return 0, ErrAgain
	}
	if !s.waker.park() {
		return 0, ErrWoken
	}
	n, err := s.conn.Read(p)
	err = s.peer.timedOut("read", s.waker.unpark(err))
	if n > 0 {
		return n, nil // an error that came along stays and shows in the next read
	}
	return n, err
}

// stageSize bounds how much is copied together for one Write of a net.Conn. It
// holds four TLS records.
const stageSize = 64 << 10

type stage [stageSize]byte

var stages = freelist.List[stage]{Retain: 8, New: func() *stage { return new(stage) }}

func (s *connStream) Write(bufs [][]byte, wait bool) (int, error) {
	if !wait {
		return 0, ErrAgain
	}
	if len(bufs) == 1 { // staged by the caller
		return s.write(bufs[0])
	}
	stage := stages.Get()
	defer stages.Put(stage)
	total, fill := 0, 0
	for _, b := range bufs {
		for len(b) > 0 {
			n := copy(stage[fill:], b)
			b = b[n:]
			if fill += n; fill < stageSize {
				continue
			}
			n, err := s.write(stage[:])
			if total += n; err != nil {
				return total, err
			}
			fill = 0
		}
	}
	if fill == 0 {
		return total, nil
	}
	n, err := s.write(stage[:fill])
	return total + n, err
}

func (s *connStream) write(p []byte) (int, error) {
	s.peer.begin()
	n, err := s.conn.Write(p)
	s.peer.end()
	return n, s.peer.timedOut("write", err)
}

func (s *connStream) Gather() int { return 0 }
func (s *connStream) EMSS() int   { return 0 }

func (s *connStream) SetDeadline(t time.Time) error { return s.conn.SetDeadline(t) }

func (s *connStream) Arm(func()) bool { return false }
func (s *connStream) Disarm()         {}
func (s *connStream) Wake()           { s.waker.wake() }

// CloseWrite returns errors.ErrUnsupported if the connection has no such method.
func (s *connStream) CloseWrite() error {
	if c, ok := s.conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (s *connStream) Close() error { return s.conn.Close() }
func (s *connStream) Abort() error { return abort(s.conn) }

func (s *connStream) Secure() bool {
	_, ok := s.conn.(*tls.Conn)
	return ok
}

func (s *connStream) Path() string {
	switch s.conn.(type) {
	case *tls.Conn:
		return PathTLS
	case *pipeConn:
		return PathPipe
	}
	return fmt.Sprintf("%s (%T)", PathNetConn, s.conn)
}

func (s *connStream) LocalAddr() net.Addr  { return s.conn.LocalAddr() }
func (s *connStream) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// abort closes c so that the peer sees a reset, where c can do that; TLS is cut
// off below, without its closing alert.
func abort(c net.Conn) error {
	switch c := c.(type) {
	case interface{ NetConn() net.Conn }: // a *tls.Conn
		return abort(c.NetConn())
	case interface{ Abort() error }:
		return c.Abort()
	case interface{ SetLinger(int) error }:
		_ = c.SetLinger(0) // fails only on a closed connection
	}
	return c.Close()
}

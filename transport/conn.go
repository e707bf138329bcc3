package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/freelist"
)

// NewStream returns a Stream that uses the connection c, and takes ownership of c. The Stream
// uses the Poller p, which may be nil, to wait.
//
// On Linux, a *net.TCPConn with a Poller is driven by raw system calls once it is detached (see
// [Detach]): one writev sends many buffers, no call allocates, and Arm works. This holds for
// exactly this type, because raw system calls would bypass the methods of a type that embeds
// it. Every other connection (TLS, a pipe, a wrapper, any system but Linux, or the build tag
// purego) is driven through its methods: Read and Write work only with waiting, and Arm
// reports false. For Wake, the connection's SetReadDeadline must interrupt a Read. A TLS
// handshake must have ended before (see [TLSClient]).
func NewStream(c net.Conn, p *Poller) Stream {
	if t, ok := c.(*net.TCPConn); ok {
		if s := newRawStream(t, p); s != nil {
			return s
		}
	}
	return NewPlainStream(c, p)
}

// NewPlainStream returns a Stream that drives every connection through its methods, including a
// *net.TCPConn. It is for applications that do not want this package to make its own system
// calls. The Poller p, which may be nil, is used only to enforce the peer timeout (see
// [SetPeerTimeout]).
func NewPlainStream(c net.Conn, p *Poller) Stream {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetNoDelay(true) // each write holds whole segments; the first read reports a failure
	}
	return &connStream{conn: c, waker: waker{conn: c}, peer: peerWatchOf(c, p)}
}

// connStream drives any net.Conn through its methods.
type connStream struct {
	conn  net.Conn
	waker waker
	peer  *peerWatch // nil: only the system's own limits apply
	mss   mssCache
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
		return n, nil // the next read returns the error again
	}
	return n, err
}

// stageSize is the most octets that are gathered for one Write of a net.Conn: four TLS
// records.
const stageSize = 64 << 10

// stageLen returns how many octets are gathered for each Write but the last: whole segments, because the
// system may begin a segment with each Write.
func stageLen(emss int) int {
	if emss <= 0 || emss > stageSize {
		return stageSize
	}
	return stageSize - stageSize%emss
}

type stage [stageSize]byte

var stages = freelist.List[stage]{Retain: 8, New: func() *stage { return new(stage) }}

func (s *connStream) Write(bufs [][]byte, wait bool) (int, error) {
	if !wait {
		return 0, ErrAgain
	}
	if len(bufs) == 1 { // staged by the caller
		return s.write(bufs[0])
	}
	return s.gather(bufs, stageLen(s.EMSS()))
}

// gather writes bufs in blocks of size octets.
func (s *connStream) gather(bufs [][]byte, size int) (int, error) {
	block := stages.Get()
	defer stages.Put(block)
	stage := block[:size]
	total, fill := 0, 0
	for _, b := range bufs {
		for len(b) > 0 {
			n := copy(stage[fill:], b)
			b = b[n:]
			if fill += n; fill < size {
				continue
			}
			n, err := s.write(stage)
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
	s.mss.written.Add(uint64(n))
	return n, s.peer.timedOut("write", err)
}

func (s *connStream) Gather() int { return 0 }

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

// TCPInfo asks the kernel about the TCP connection: s.conn itself, or the connection below it.
func (s *connStream) TCPInfo() (TCPInfo, bool) { return infoOfConn(s.conn) }

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

// abort closes c, with a reset if c supports that. A TLS connection is ended without a
// close_notify alert.
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

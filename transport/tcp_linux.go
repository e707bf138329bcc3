//go:build linux && !purego

package transport

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// HasRawTCP reports whether this build supports PathRawTCP.
const HasRawTCP = true

// A tcpSetup is a TCP connection during set-up. The application may still need the net.Conn: it
// gets the connection back if the set-up is rejected.
type tcpSetup struct {
	connStream
	tcp    *net.TCPConn
	poller *Poller
}

// newRawStream returns nil if p is nil: a rawStream needs a Poller to wait.
func newRawStream(c *net.TCPConn, p *Poller) Stream {
	if p == nil {
		return nil
	}
	_ = c.SetNoDelay(true) // each write holds whole segments; the first read reports a failure
	// Its peerWatch is created when it is detached.
	return &tcpSetup{connStream{conn: c, waker: waker{conn: c}}, c, p}
}

// Read with NoWait reads data that has arrived already.
func (s *tcpSetup) Read(p []byte, wait Wait) (int, error) {
	if wait != NoWait {
		return s.connStream.Read(p, wait)
	}
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var readErr error
	if err := raw.Read(func(fd uintptr) bool {
		n, readErr = unix.Read(int(fd), p)
		return true
	}); err != nil {
		return 0, err
	}
	switch {
	case readErr == unix.EAGAIN:
		return 0, ErrAgain
	case readErr != nil:
		return 0, readErr
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Detach returns a rawStream, or s if the process has no descriptor left.
func (s *tcpSetup) Detach() Stream {
	r := &rawStream{local: s.conn.LocalAddr(), remote: s.conn.RemoteAddr()}
	if r.sock.takeOver(s.tcp) != nil {
		s.peer = peerWatchOf(s.tcp, s.poller)
		return s
	}
	if !isWithinHost(r.local, r.remote) {
		r.sock.eor = unix.MSG_EOR
	}
	r.watch.init(s.poller, &r.sock)
	r.peer = newPeerWatch(s.poller, r.sock.control)
	r.in.init(&r.sock, &r.watch, inward, r.tryRead)
	r.out.init(&r.sock, &r.watch, outward, r.tryWrite)
	return r
}

// isWithinHost reports whether both ends are on this host. There the peer is neither a card nor Linux's siw, for which MPA
// chooses where segments begin. A segment holds all of a usual write; another segment for a few remaining octets would cost
// as much as the write.
func isWithinHost(local, remote net.Addr) bool {
	l, ok := local.(*net.TCPAddr)
	r, also := remote.(*net.TCPAddr)
	return ok && also && (l.IP.IsLoopback() || l.IP.Equal(r.IP))
}

// rawStream drives a TCP socket by raw system calls. Each call tries first, and waits only if
// the attempt returns EAGAIN.
type rawStream struct {
	sock          socket
	local, remote net.Addr
	in, out       waiting
	read          reading
	write         writing
	mss           mssCache
	watch         watch
	peer          *peerWatch // nil: only the kernel's own limits apply
}

// SetDeadline is not supported: it is for set-up only.
func (s *rawStream) SetDeadline(time.Time) error { return os.ErrNoDeadline }

func (s *rawStream) Arm(ready func()) bool {
	s.in.release() // before arm, because ready may start a reader
	return s.watch.arm(ready)
}

func (s *rawStream) Disarm() { s.watch.disarm() }

func (s *rawStream) Wake() { s.in.wake() }

func (s *rawStream) CloseWrite() error {
	if !s.sock.hold() {
		return net.ErrClosed
	}
	defer s.sock.drop()
	defer s.peer.wrote()
	return os.NewSyscallError("shutdown", unix.Shutdown(s.sock.fd, unix.SHUT_WR))
}

// Close closes the socket. Calls that wait return, and the callback of Arm is called.
func (s *rawStream) Close() error {
	if !s.sock.close() {
		return net.ErrClosed
	}
	s.watch.release()
	s.in.close()
	s.out.close()
	return nil
}

func (s *rawStream) Abort() error {
	if s.sock.hold() {
		_ = unix.SetsockoptLinger(s.sock.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // never fails for TCP
		s.sock.drop()
	}
	return s.Close()
}

// TCPInfo asks the kernel. It reports false after Close.
func (s *rawStream) TCPInfo() (i TCPInfo, ok bool) {
	s.sock.control(func(fd int) { i, ok = askTCP(fd) })
	return i, ok
}

func (s *rawStream) Secure() bool         { return false }
func (s *rawStream) Path() string         { return PathRawTCP }
func (s *rawStream) LocalAddr() net.Addr  { return s.local }
func (s *rawStream) RemoteAddr() net.Addr { return s.remote }

// failed returns the error of a system call in the form that package net uses.
func (s *rawStream) failed(op, call string, e syscall.Errno) error {
	err := net.ErrClosed
	if e != syscall.EBADF {
		err = s.peer.timedOut(call, os.NewSyscallError(call, e))
	}
	return &net.OpError{Op: op, Net: "tcp", Source: s.local, Addr: s.remote, Err: err}
}

// EMSS returns how many octets the kernel now puts into one segment. The kernel takes the MSS
// of the peer, the path MTU and the TCP options into account. It is asked again after each
// mebibyte that was written.
func (s *rawStream) EMSS() int {
	if s.mss.due() {
		v, ok := s.sock.option(unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		s.mss.learn(int(v), ok)
	}
	return s.mss.get()
}

//go:build linux && !386

package sctpkernel

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/transport"
)

// A socket is the socket of an association, or a listening socket. One goroutine at a time may
// receive, one may wait until it is writable, and one may send.
type socket struct {
	file *os.File // registers the socket with the runtime's poller
	raw  syscall.RawConn
	in   receiving
	out  sending
	poll writing
}

// newSocket takes over a non-blocking descriptor.
func newSocket(fd int) (*socket, error) {
	f := os.NewFile(uintptr(fd), Network)
	raw, err := f.SyscallConn()
	if err == nil { // NewFile does not report that the runtime could not register the socket; no goroutine could then wait for it
		err = os.NewSyscallError("epoll_ctl", f.SetReadDeadline(time.Time{}))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	s := &socket{file: f, raw: raw}
	// Created once: a closure per call would be allocated.
	s.in.try, s.out.try, s.poll.try = s.tryReceive, s.trySend, s.tryWritable
	return s, nil
}

// controlSize holds the control message of either direction.
const controlSize = 64

// receiving is the state of one receive.
type receiving struct {
	try     func(fd uintptr) bool
	wait    bool
	m       *message
	err     error
	hdr     unix.Msghdr
	iov     unix.Iovec
	control [controlSize]byte
}

// receive returns the next message or notification. Without wait it returns
// transport.ErrAgain if there is none. io.EOF: the association has ended gracefully.
func (s *socket) receive(wait bool) (*message, error) {
	r := &s.in
	r.wait, r.err = wait, nil
	err := s.raw.Read(r.try)
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, net.ErrClosed) {
		// The runtime does not wait for a socket that only has an error, such as that of a
		// connect which was refused before the wait began: read the error.
		r.wait = false
		err = s.raw.Control(func(fd uintptr) { s.tryReceive(fd) })
	}
	raceorder.Receive()
	if err == nil {
		err = r.err
	}
	m := r.m
	r.m = nil
	if err != nil {
		if m != nil {
			m.free()
		}
		return nil, err
	}
	return m, nil
}

// tryReceive reads one message, which the kernel may deliver in parts. If it returns false the
// runtime parks the goroutine, and calls it again later. While nothing arrives it holds no buffer.
func (s *socket) tryReceive(fd uintptr) bool {
	r := &s.in
	for {
		if r.m == nil {
			r.m = newMessage(len(classes) - 1)
		}
		m := r.m
		if len(m.buf)-m.n < minNotification {
			m.long, m.n = true, 0 // the rest of the message is dropped
		}
		n, errno := r.recvmsg(fd, m.buf[m.n:])
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			if m.n == 0 && !m.long {
				m.free()
				r.m = nil
			}
			if r.wait {
				return false
			}
			r.err = transport.ErrAgain
			return true
		case errno != 0:
			r.err = os.NewSyscallError("recvmsg", errno)
			return true
		case n == 0:
			r.err = io.EOF
			return true
		}
		if r.took(n) {
			return true
		}
	}
}

func (r *receiving) recvmsg(fd uintptr, p []byte) (int, syscall.Errno) {
	r.iov.Base = &p[0]
	r.iov.SetLen(len(p))
	r.hdr = unix.Msghdr{Iov: &r.iov, Control: &r.control[0]}
	r.hdr.SetIovlen(1)
	r.hdr.SetControllen(len(r.control))
	n, _, errno := syscall.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.hdr)), 0)
	r.iov.Base = nil // so that an idle socket retains no buffer
	return int(n), errno
}

const (
	flagNotification = 0x8000 // MSG_NOTIFICATION

	controlSndInfo = 2 // SCTP_SNDINFO
	controlRcvInfo = 3 // SCTP_RCVINFO
	rcvInfoSize    = 28
	sndInfoSize    = 16
)

// took records what has arrived, and reports whether the message is complete.
func (r *receiving) took(n int) bool {
	m := r.m
	whole := r.hdr.Flags&unix.MSG_EOR != 0
	if r.hdr.Flags&flagNotification != 0 {
		return r.tookNotification(n, whole)
	}
	m.n += n
	hdr := unix.CmsgLen(0)
	if int(r.hdr.Controllen) >= hdr+rcvInfoSize {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&r.control[0]))
		if c.Level == unix.IPPROTO_SCTP && c.Type == controlRcvInfo {
			info := r.control[hdr:]
			m.stream = binary.NativeEndian.Uint16(info)
			m.ppid = binary.BigEndian.Uint32(info[8:])
		}
	}
	return whole
}

// tookNotification handles a notification. In the middle of a message it says that the rest of
// the message will not arrive.
func (r *receiving) tookNotification(n int, whole bool) bool {
	m := r.m
	said := notification(m.buf[m.n : m.n+n])
	if said.kind() == notifyPartialDelivery {
		m.n, m.long = 0, false
		return false
	}
	m.n = copy(m.buf, said)
	m.notification, m.long = true, !whole
	return true
}

// sending is the state of one send.
type sending struct {
	try     func(fd uintptr)
	err     error
	hdr     unix.Msghdr
	iov     unix.Iovec
	control [controlSize]byte
}

// The flags of a message (RFC 6458 section 5.3.4).
const (
	flagUnordered = 1 << 0
	flagImmediate = 1 << 3 // SCTP_SACK_IMMEDIATELY: RFC 7053
)

// send sends one message. If it would have to wait it returns transport.ErrAgain.
func (s *socket) send(stream uint16, ppid uint32, immediate bool, p []byte) error {
	w := &s.out
	flags := uint16(flagUnordered)
	if immediate {
		flags |= flagImmediate
	}
	c := (*unix.Cmsghdr)(unsafe.Pointer(&w.control[0]))
	c.Level, c.Type = unix.IPPROTO_SCTP, controlSndInfo
	c.SetLen(unix.CmsgLen(sndInfoSize))
	info := w.control[unix.CmsgLen(0):]
	binary.NativeEndian.PutUint16(info, stream)
	binary.NativeEndian.PutUint16(info[2:], flags)
	binary.BigEndian.PutUint32(info[4:], ppid)
	w.iov.Base = &p[0]
	w.iov.SetLen(len(p))
	w.hdr = unix.Msghdr{Iov: &w.iov, Control: &w.control[0]}
	w.hdr.SetIovlen(1)
	w.hdr.SetControllen(unix.CmsgSpace(sndInfoSize))
	raceorder.Send()
	err := s.raw.Control(w.try)
	w.iov.Base = nil
	if err == nil {
		err = w.err
	}
	return err
}

func (s *socket) trySend(fd uintptr) {
	w := &s.out
	for {
		_, _, errno := syscall.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&w.hdr)), unix.MSG_NOSIGNAL)
		switch errno {
		case 0:
			w.err = nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			w.err = transport.ErrAgain
		default:
			w.err = os.NewSyscallError("sendmsg", errno)
		}
		return
	}
}

// writing is the state of one wait for writability.
type writing struct {
	try    func(fd uintptr) bool
	parked bool
}

// writable waits until there is room for a message. waited is false if there was room without
// waiting.
func (s *socket) writable() (waited bool, err error) {
	s.poll.parked = false
	err = s.raw.Write(s.poll.try)
	return s.poll.parked, err
}

// tryWritable asks the kernel while the runtime's poller watches the socket: if the socket
// becomes writable after the answer, the poller wakes the goroutine.
func (s *socket) tryWritable(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds[:], 0)
	if n == 0 || err == unix.EINTR {
		s.poll.parked = true
		return false
	}
	return true
}

// control calls f with the descriptor, and returns its error.
func (s *socket) control(f func(fd int) error) error {
	var err error
	if cerr := s.raw.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// getsockopt reads an option into p, and returns its length.
func getsockopt(fd, level, name int, p []byte) (int, error) {
	n := uint32(len(p))
	_, _, errno := syscall.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&n)), 0)
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, os.NewSyscallError("getsockopt", errno)
	}
	return int(n), nil
}

// queued returns how many octets of memory the kernel counts, including its own overhead, for the
// messages that the peer has not acknowledged cumulatively.
func (s *socket) queued() (octets int, err error) {
	const soMeminfo, queued, vars = 55, 5, 9
	err = s.control(func(fd int) error {
		p := make([]byte, 4*vars)
		n, err := getsockopt(fd, unix.SOL_SOCKET, soMeminfo, p)
		if err == nil && n <= 4*queued {
			err = os.NewSyscallError("getsockopt", unix.EINVAL)
		}
		octets = int(binary.NativeEndian.Uint32(p[4*queued:]))
		return err
	})
	return octets, err
}

// unfragmented returns the size of the largest message that is sent in one piece.
func (s *socket) unfragmented() (octets int, err error) {
	const sctpStatus, size, at = 14, 176, 20
	err = s.control(func(fd int) error {
		p := make([]byte, size)
		_, err := getsockopt(fd, unix.IPPROTO_SCTP, sctpStatus, p)
		octets = int(binary.NativeEndian.Uint32(p[at:]))
		return err
	})
	return octets, err
}

// addrs returns the addresses of one end of the association.
func (s *socket) addrs(whose int) (a Addr, err error) {
	err = s.control(func(fd int) error {
		p := make([]byte, 4096)
		_, err := getsockopt(fd, unix.IPPROTO_SCTP, whose, p)
		if err == nil {
			a = parseAddrs(binary.NativeEndian.Uint32(p[4:]), p[8:])
		}
		return err
	})
	return a, err
}

// parseAddrs reads socket addresses, one after the other.
func parseAddrs(n uint32, p []byte) Addr {
	var a Addr
	for ; n > 0 && len(p) >= unix.SizeofSockaddrInet4; n-- {
		a.Port = binary.BigEndian.Uint16(p[2:])
		switch binary.NativeEndian.Uint16(p) {
		case unix.AF_INET:
			a.IPs = append(a.IPs, netip.AddrFrom4([4]byte(p[4:8])))
			p = p[unix.SizeofSockaddrInet4:]
		case unix.AF_INET6:
			if len(p) < unix.SizeofSockaddrInet6 {
				return a
			}
			ip := netip.AddrFrom16([16]byte(p[8:24])).Unmap()
			if zone := binary.NativeEndian.Uint32(p[24:]); zone != 0 {
				ip = ip.WithZone(zoneName(zone))
			}
			a.IPs = append(a.IPs, ip)
			p = p[unix.SizeofSockaddrInet6:]
		default:
			return a
		}
	}
	return a
}

// accept waits for the next association of a listening socket.
func (s *socket) accept() (*socket, error) {
	fd := -1
	var failed error
	err := s.raw.Read(func(l uintptr) bool {
		for {
			fd, _, failed = unix.Accept4(int(l), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			if failed != unix.EINTR {
				return failed != unix.EAGAIN
			}
		}
	})
	if err == nil && failed != nil {
		err = os.NewSyscallError("accept4", failed)
	}
	if err != nil {
		return nil, err
	}
	return newSocket(fd)
}

// shutdown begins the graceful end of the association.
func (s *socket) shutdown() {
	_ = s.control(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) }) // fails if it has ended
}

// abort ends the association at once, and tells the peer.
func (s *socket) abort() {
	_ = s.control(func(fd int) error {
		return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	})
	s.close()
}

// close wakes all goroutines that wait for the socket.
func (s *socket) close() { _ = s.file.Close() }

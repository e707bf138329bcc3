//go:build linux && !purego

package transport

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket is the descriptor of a connection. It is closed when it is to be closed and
// nobody is in a system call with it any more: until then its number must not become
// another file's.
//
// The runtime's poller does not know it. That would be told of every octet that comes for
// as long as the socket is open; a thread of the program would wake for each, find that
// nobody waits there, and have taken a processor from whoever does.
type socket struct {
	fd    int
	users atomic.Int64 // those in a system call; and socketClosed
}

const socketClosed = 1 << 32

// takeOver takes the descriptor of c, which is closed.
func (s *socket) takeOver(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var dupErr error
	err = raw.Control(func(fd uintptr) {
		s.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = os.NewSyscallError("fcntl", dupErr)
	}
	if err != nil {
		return err
	}
	_ = c.Close() // the connection stays: there is another descriptor
	perches.opened()
	s.maySleep()
	return nil
}

// sleepLimit is how long a system call in the berth lasts at most: see berth.sleep.
const sleepLimit = time.Second

// maySleep makes the descriptor one that system calls wait for. Only the one in the berth
// does: all others say each time that they do not want to.
func (s *socket) maySleep() {
	limit := unix.NsecToTimeval(int64(sleepLimit))
	for _, name := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		_ = unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, name, &limit) // of a socket always possible
	}
	_ = unix.SetNonblock(s.fd, false) // likewise
}

// hold keeps the descriptor open until drop. It reports false if it is closed.
func (s *socket) hold() bool {
	for {
		n := s.users.Load()
		if n >= socketClosed {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *socket) drop() {
	if s.users.Add(-1) == socketClosed {
		_ = unix.Close(s.fd) // nothing is lost
		perches.closed()
	}
}

func (s *socket) closed() bool { return s.users.Load() >= socketClosed }

// close refuses everybody from now on. It reports false if that was so before.
func (s *socket) close() bool {
	if !s.hold() {
		return false
	}
	defer s.drop()
	for {
		n := s.users.Load()
		if n >= socketClosed {
			return false
		}
		if s.users.CompareAndSwap(n, n+socketClosed) {
			return true
		}
	}
}

// recv is recv(2), which costs less than readv(2) where there is one buffer.
func (s *socket) recv(p []byte) (int, syscall.Errno) {
	if !s.hold() {
		return 0, syscall.EBADF
	}
	defer s.drop()
	lone.disturb()
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		if e == 0 {
			raceReceive(uintptr(s.fd), p[:n])
			return int(n), 0
		}
		if e != syscall.EINTR {
			return 0, e
		}
	}
}

// readv is readv(2), as recvmsg(2).
func (s *socket) readv(iov []unix.Iovec) (int, syscall.Errno) {
	n, e := s.vector(unix.SYS_RECVMSG, iov)
	if e == 0 {
		raceRead(uintptr(s.fd), iov, n)
	}
	return n, e
}

// writev is writev(2), as sendmsg(2): who writes to a connection that has ended gets an error
// and no signal.
func (s *socket) writev(iov []unix.Iovec) (int, syscall.Errno) {
	raceWrite(iov)
	return s.vector(unix.SYS_SENDMSG, iov)
}

// vector makes a system call that does not wait, and that the scheduler is not told of.
// When it is, its monitor looks every few microseconds whether the call lasts, which takes
// a third of the speed of a bulk transfer where to wake a thread is expensive. A call takes
// as long as a copy of its octets, a tenth of a millisecond at most.
func (s *socket) vector(call uintptr, iov []unix.Iovec) (int, syscall.Errno) {
	if !s.hold() {
		return 0, syscall.EBADF
	}
	defer s.drop()
	lone.disturb()
	m := unix.Msghdr{Iov: &iov[0]}
	m.SetIovlen(len(iov))
	for {
		n, _, e := syscall.RawSyscall(call, uintptr(s.fd), uintptr(unsafe.Pointer(&m)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if e == 0 {
			return int(n), 0
		}
		if e != syscall.EINTR {
			return 0, e
		}
	}
}

// sleepRead is readv in the berth, which the caller has: see berth.sleep.
func (s *socket) sleepRead(iov []unix.Iovec) (int, syscall.Errno) {
	n, e := s.sleep(unix.SYS_RECVMSG, iov)
	if e == 0 {
		raceRead(uintptr(s.fd), iov, n)
	}
	return n, e
}

// sleepWrite is writev in the berth, which the caller has: see berth.sleep.
func (s *socket) sleepWrite(iov []unix.Iovec) (int, syscall.Errno) {
	raceWrite(iov)
	return s.sleep(unix.SYS_SENDMSG, iov)
}

func (s *socket) sleep(call uintptr, iov []unix.Iovec) (int, syscall.Errno) {
	if !s.hold() {
		return 0, syscall.EBADF
	}
	defer s.drop()
	return lone.sleep(call, s.fd, iov)
}

// control runs f with the descriptor, unless that is closed.
func (s *socket) control(f func(fd int)) {
	if s.hold() {
		f(s.fd)
		s.drop()
	}
}

// option is getsockopt(2), which the scheduler is not told of either.
func (s *socket) option(level, name int) (value int32, ok bool) {
	if !s.hold() {
		return 0, false
	}
	defer s.drop()
	size := uint32(unsafe.Sizeof(value))
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	return value, e == 0
}

//go:build linux && !purego

package transport

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket is the descriptor of a connection, in non-blocking mode. It is closed when it is
// to be closed and no goroutine is in a system call with it any more: until then its number
// must not become another file's.
//
// The runtime's poller does not know it: as long as the socket is open the kernel would tell
// that poller of every octet that comes. A thread of the program would wake each time, find
// that no goroutine waits there, and have taken a processor from one that works.
type socket struct {
	fd    int
	users atomic.Int64 // goroutines in a system call; and socketClosed
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
	return nil
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
	}
}

// close makes hold refuse every call from now on. It reports false if it did before.
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

// tellFrom is from how many octets on it is looked whether a system call that does not wait
// may have to wait for a disk, so that the scheduler is told of it. When it is told, its
// monitor looks whether the call lasts, which takes up to a third of the speed of a transfer
// where to wake a thread is expensive. When it is not, every collection waits until the call
// is over: as long as a copy of its octets takes, a tenth of a millisecond for a mebibyte.
// But where a page has to come from a disk first it takes as long as the disk. So the
// scheduler is told of every call on memory that may lie in a mapped file as far as is known
// (see Prefaulter), and of long ones on memory that is not all there, because the application
// may have registered memory that it has mapped itself.
const tellFrom = 128 << 10

// do makes a system call that does not wait, until it has not been interrupted by a signal.
// told: the scheduler is told.
func do(told bool, call, fd uintptr, p unsafe.Pointer, a, b uintptr) (int, syscall.Errno) {
	for {
		var n uintptr
		var e syscall.Errno
		if told {
			n, _, e = syscall.Syscall6(call, fd, uintptr(p), a, b, 0, 0)
		} else {
			n, _, e = syscall.RawSyscall6(call, fd, uintptr(p), a, b, 0, 0)
		}
		if e == 0 {
			return int(n), 0
		}
		if e != syscall.EINTR {
			return 0, e
		}
	}
}

// recv is recv(2), which costs less than readv(2) where there is one buffer.
func (s *socket) recv(p []byte) (int, syscall.Errno) {
	if !s.hold() {
		return 0, syscall.EBADF
	}
	defer s.drop()
	n, e := do(false, unix.SYS_RECVFROM, uintptr(s.fd), unsafe.Pointer(&p[0]), uintptr(len(p)), unix.MSG_DONTWAIT)
	if e == 0 {
		raceReceive(uintptr(s.fd), p[:n])
	}
	return n, e
}

// readv is readv(2), as recvmsg(2). told: the scheduler is told.
func (s *socket) readv(iov []unix.Iovec, told bool) (int, syscall.Errno) {
	n, e := s.vector(unix.SYS_RECVMSG, iov, told)
	if e == 0 {
		raceRead(uintptr(s.fd), iov, n)
	}
	return n, e
}

// writev is writev(2), as sendmsg(2): a write to a connection that has ended gets an error
// and no signal. told: the scheduler is told.
func (s *socket) writev(iov []unix.Iovec, told bool) (int, syscall.Errno) {
	raceWrite(iov)
	return s.vector(unix.SYS_SENDMSG, iov, told)
}

// vector makes a system call that does not wait.
func (s *socket) vector(call uintptr, iov []unix.Iovec, told bool) (int, syscall.Errno) {
	if !s.hold() {
		return 0, syscall.EBADF
	}
	defer s.drop()
	m := unix.Msghdr{Iov: &iov[0]}
	m.SetIovlen(len(iov))
	return do(told, call, uintptr(s.fd), unsafe.Pointer(&m), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0)
}

func isLong(iov []unix.Iovec) bool {
	n := 0
	for i := range iov {
		if n += int(iov[i].Len); n >= tellFrom {
			return true
		}
	}
	return false
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

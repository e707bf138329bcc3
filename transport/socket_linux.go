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

// A socket is the descriptor of a connection, in non-blocking mode. After close, the descriptor
// is closed when no goroutine uses it in a system call any more: until then its number must not
// be reused for another file.
//
// The socket is not registered with the poller of the Go runtime. Otherwise the kernel would
// report each arrival of data to that poller: a thread of the program would wake up each time,
// find that no goroutine waits there, and take a processor from a goroutine that runs.
type socket struct {
	fd    int
	users atomic.Int64 // number of goroutines in a system call, plus socketClosed after close
	eor   uintptr      // MSG_EOR: the octets of the next writev begin a new segment; or 0
}

const socketClosed = 1 << 32

// takeOver duplicates the descriptor of c, and closes c.
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
	_ = c.Close() // the connection stays open: there is another descriptor
	return nil
}

// hold prevents the descriptor from being closed until drop. It reports false after close.
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

// close makes each later hold report false. It reports false if the socket was closed before.
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

// tellFrom is the number of octets from which on a non-blocking system call is checked for
// memory that would have to be loaded from disk, so that the scheduler is told of the call.
//
// If the scheduler is told, its monitor thread checks how long the call takes, which costs up to
// a third of the speed of a transfer on machines where waking a thread is expensive. If it is not
// told, every garbage collection waits for the end of the call: a tenth of a millisecond for a
// mebibyte in memory, but as long as the disk takes for pages that have to be loaded first. So
// the scheduler is told of each call on memory that may lie in a mapped file (see Prefaulter),
// and of each long call on memory that is not resident, because the application may have
// registered memory that it has mapped itself.
const tellFrom = 128 << 10

// do makes a non-blocking system call, and repeats it while a signal interrupts it. With told,
// the scheduler is told of the call.
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

// recv is recv(2), which costs less than readv(2) for one buffer.
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

// readv is readv(2), by recvmsg(2). With told, the scheduler is told of the call.
func (s *socket) readv(iov []unix.Iovec, told bool) (int, syscall.Errno) {
	n, e := s.vector(unix.SYS_RECVMSG, iov, told, 0)
	if e == 0 {
		raceRead(uintptr(s.fd), iov, n)
	}
	return n, e
}

// writev is writev(2), by sendmsg(2), so that a write to a connection that has ended returns an
// error and causes no signal. With told, the scheduler is told of the call.
func (s *socket) writev(iov []unix.Iovec, told bool) (int, syscall.Errno) {
	raceWrite(iov)
	return s.vector(unix.SYS_SENDMSG, iov, told, unix.MSG_NOSIGNAL|s.eor)
}

// vector makes a non-blocking system call on several buffers.
func (s *socket) vector(call uintptr, iov []unix.Iovec, told bool, flags uintptr) (int, syscall.Errno) {
	if !s.hold() {
		return 0, syscall.EBADF
	}
	defer s.drop()
	m := unix.Msghdr{Iov: &iov[0]}
	m.SetIovlen(len(iov))
	return do(told, call, uintptr(s.fd), unsafe.Pointer(&m), unix.MSG_DONTWAIT|flags, 0)
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

// control calls f with the descriptor, unless the socket is closed.
func (s *socket) control(f func(fd int)) {
	if s.hold() {
		f(s.fd)
		s.drop()
	}
}

// option is getsockopt(2). The scheduler is not told of the call.
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

//go:build linux && !purego

package transport

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An epollSet is an epoll set in which a goroutine waits by way of the runtime's poller,
// which polls the set: no thread of the operating system sleeps in it.
type epollSet struct {
	fd   int
	file *os.File // of fd
	raw  syscall.RawConn
}

func (s *epollSet) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else the runtime would not poll it
		_ = unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return err
	}
	s.fd, s.file, s.raw = fd, file, raw
	return nil
}

func (s *epollSet) close() error { return s.file.Close() }

// interrupt ends a wait, and each that follows until resume is called.
func (s *epollSet) interrupt() { _ = s.file.SetReadDeadline(longAgo) } // fails only if the set is closed

func (s *epollSet) resume() { _ = s.file.SetReadDeadline(time.Time{}) } // likewise

// control adds a socket to the set, or modifies what the set reports of it: each change to
// events, and at once if there are any. It returns false if the socket is closed, or the
// system has no memory.
func (s *epollSet) control(op int, sock *socket, events uint32) bool {
	if !sock.hold() {
		return false
	}
	defer sock.drop()
	ev := unix.EpollEvent{Events: unix.EPOLLET | events}
	return unix.EpollCtl(s.fd, op, sock.fd, &ev) == nil
}

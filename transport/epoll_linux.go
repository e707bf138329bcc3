//go:build linux && !purego

package transport

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An epollSet is an epoll set that is registered with the poller of the Go runtime. A goroutine
// that waits for the set parks, and occupies no thread of the operating system.
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
	if err == nil { // NewFile does not report that the runtime could not register the set; no goroutine could then wait for it
		err = os.NewSyscallError("epoll_ctl", file.SetReadDeadline(time.Time{}))
	}
	if err != nil {
		_ = file.Close()
		return err
	}
	s.fd, s.file, s.raw = fd, file, raw
	return nil
}

func (s *epollSet) close() error { return s.file.Close() }

// interrupt ends a wait. Each later wait ends at once, until resume is called.
func (s *epollSet) interrupt() { _ = s.file.SetReadDeadline(longAgo) } // fails only if the set is closed

func (s *epollSet) resume() { _ = s.file.SetReadDeadline(time.Time{}) } // likewise

// control adds a socket to the set, or modifies which events the set reports for it. They are
// reported edge-triggered; an event that is pending already is reported at once. control
// returns false if the socket is closed, or the system has no memory.
func (s *epollSet) control(op int, sock *socket, events uint32) bool {
	if !sock.hold() {
		return false
	}
	defer sock.drop()
	ev := unix.EpollEvent{Events: unix.EPOLLET | events}
	return unix.EpollCtl(s.fd, op, sock.fd, &ev) == nil
}

// nests reports whether an epoll set reports each event of an epoll set within it, even if no call fetches the events
// of the inner one. Linux does. gVisor reports only the first event: there a goroutine would wait in an inner set for ever.
func nests() bool {
	var event eventFD
	if event.open() != nil {
		return false
	}
	defer event.close()
	last := event.fd
	for range 2 { // the inner set, and the one around it
		set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return false
		}
		defer func() { _ = unix.Close(set) }() // never fails for an epoll set
		if unix.EpollCtl(set, unix.EPOLL_CTL_ADD, last, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}) != nil {
			return false
		}
		last = set
	}
	for range 2 {
		event.interrupt()
		if n, _ := unix.EpollWait(last, make([]unix.EpollEvent, 1), 0); n != 1 {
			return false
		}
		event.resume()
	}
	return true
}

//go:build linux && !purego

package transport

import (
	"os"

	"golang.org/x/sys/unix"
)

// An eventFD is a descriptor that is ready from interrupt to resume, so that a system call
// that sleeps on several descriptors can be ended.
type eventFD struct{ fd int }

func (e *eventFD) open() error {
	var err error
	e.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return os.NewSyscallError("eventfd", err)
}

func (e *eventFD) close() { _ = unix.Close(e.fd) } // of an eventfd never fails

func (e *eventFD) interrupt() {
	_, _ = unix.Write(e.fd, []byte{7: 1}) // fails only if it has been interrupted 2^32 times
}

func (e *eventFD) resume() {
	var count [8]byte
	_, _ = unix.Read(e.fd, count[:]) // fails only if it was not interrupted
}

//go:build linux && !purego

package transport

import (
	"os"

	"golang.org/x/sys/unix"
)

// An eventFD is a descriptor that is readable from interrupt to resume. It ends a system call
// that waits for it together with other descriptors.
type eventFD struct{ fd int }

func (e *eventFD) open() error {
	var err error
	e.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return os.NewSyscallError("eventfd", err)
}

func (e *eventFD) close() { _ = unix.Close(e.fd) } // never fails for an eventfd

func (e *eventFD) interrupt() {
	_, _ = unix.Write(e.fd, []byte{7: 1}) // fails only if it has been interrupted 2^32 times
}

func (e *eventFD) resume() {
	var count [8]byte
	_, _ = unix.Read(e.fd, count[:]) // fails only if it was not interrupted
}

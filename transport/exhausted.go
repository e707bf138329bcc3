package transport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/goiwarp/iwarp/internal/sockerr"
)

// ErrExhausted matches the error of a call that has failed because the process or the system has
// run out of a resource that connections need. The text of the error names the resource.
var ErrExhausted = errors.New("out of resources")

// Exhausted returns an error that matches ErrExhausted, wraps err and names the resource, if err
// is the error of a system call that has run out of a resource. Otherwise it returns err.
func Exhausted(err error) error {
	var what string
	switch {
	case sockerr.Is(err, syscall.EMFILE):
		what = "the process has no file descriptor left" + fileLimit()
	case errors.Is(err, syscall.ENFILE):
		what = "the system has no file descriptor left"
	case sockerr.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		what = "the system has no memory left for sockets"
	case lacksWatch(err):
		what = "the user has no epoll watch left (sysctl fs.epoll.max_user_watches)"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrExhausted, what, err)
}

// lacksWatch reports whether err is that of an epoll_ctl for which the user has no watch left. The runtime's poller tells only that it
// watches a descriptor not at all (ErrNoDeadline), and package net the number without the name of the call. That number is also the
// one of a file for which there is no space.
func lacksWatch(err error) bool {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Syscall == "epoll_ctl" && (errors.Is(call, syscall.ENOSPC) || errors.Is(call, os.ErrNoDeadline))
	}
	_, socket := errors.AsType[*net.OpError](err)
	return socket && errors.Is(err, syscall.ENOSPC)
}

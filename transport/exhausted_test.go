package transport

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExhaustedOnEverySystem: on Windows the errors have numbers of their own.
func TestExhaustedOnEverySystem(t *testing.T) {
	const wsaemfile, wsaenobufs = syscall.Errno(10024), syscall.Errno(10055)
	for errno, says := range map[syscall.Errno]string{
		syscall.EMFILE: "out of resources: the process has no file descriptor left",
		wsaemfile:      "out of resources: the process has no file descriptor left",
		syscall.ENFILE: "out of resources: the system has no file descriptor left",
		wsaenobufs:     "out of resources: the system has no memory left for sockets",
	} {
		cause := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
		err := Exhausted(cause)
		require.ErrorIs(t, err, ErrExhausted, "%d", errno)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, says)
	}
	other := errors.New("other")
	require.Equal(t, other, Exhausted(other))
	require.NoError(t, Exhausted(nil))
}

// TestExhaustedWatches: epoll_ctl has the error of a file for which there is no space.
func TestExhaustedWatches(t *testing.T) {
	for _, cause := range []error{
		&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENOSPC}, // as package net has it
		os.NewSyscallError("epoll_ctl", syscall.ENOSPC),
		os.NewSyscallError("epoll_ctl", os.ErrNoDeadline), // the runtime does not say why
	} {
		err := Exhausted(cause)
		require.ErrorIs(t, err, ErrExhausted)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "out of resources: the user has no epoll watch left (sysctl fs.epoll.max_user_watches)")
	}
	for _, file := range []error{
		syscall.ENOSPC, os.ErrNoDeadline,
		&fs.PathError{Op: "write", Path: "file", Err: syscall.ENOSPC},
		os.NewSyscallError("fallocate", syscall.ENOSPC),
		&net.OpError{Op: "set", Net: "tcp", Err: os.ErrNoDeadline},
	} {
		require.Equal(t, file, Exhausted(file))
	}
}

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

// TestExhaustedPorts: of a connection of TCP that is told as the lack of an address, of UDP as a call that would wait, and of a
// listener as a port that is in use.
func TestExhaustedPorts(t *testing.T) {
	at := func(host string, port int) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(host), Port: port} }
	failure := func(call string, e syscall.Errno, a net.Addr) error {
		return &net.OpError{Op: "op", Net: "tcp", Addr: a, Err: os.NewSyscallError(call, e)}
	}
	const wsaeaddrnotavail = syscall.Errno(10049)
	for _, cause := range []error{
		failure("connect", syscall.EADDRNOTAVAIL, at("192.0.2.1", 7)),
		failure("connect", wsaeaddrnotavail, at("192.0.2.1", 7)),
		failure("connect", syscall.EAGAIN, nil),
		failure("bind", syscall.EADDRINUSE, at("::1", 0)),
		&net.OpError{Op: "listen", Err: failure("bind", syscall.EADDRINUSE, at("192.0.2.1", 0))},
	} {
		err := Exhausted(cause)
		require.ErrorIs(t, err, ErrExhausted)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "out of resources: the system has no local port left (on Linux sysctl net.ipv4.ip_local_port_range)")
	}
	for _, other := range []error{
		syscall.EAGAIN, syscall.EADDRNOTAVAIL,
		failure("read", syscall.EAGAIN, at("192.0.2.1", 7)),
		failure("connect", syscall.EADDRNOTAVAIL, at("::1", 7)),
		failure("connect", syscall.EADDRNOTAVAIL, at("192.0.2.1", 0)),
		failure("connect", syscall.EADDRNOTAVAIL, nil),
		failure("bind", syscall.EADDRINUSE, at("192.0.2.1", 7)),
		failure("bind", syscall.EADDRINUSE, nil),
		failure("bind", syscall.EADDRNOTAVAIL, at("192.0.2.1", 0)),
	} {
		require.Equal(t, other, Exhausted(other))
	}
}

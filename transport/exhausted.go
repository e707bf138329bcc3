package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	case lacksPort(err):
		what = "the system has no local port left (on Linux sysctl net.ipv4.ip_local_port_range)"
	case lacksWatch(err):
		what = "the user has no epoll watch left (sysctl fs.epoll.max_user_watches)"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrExhausted, what, err)
}

// lacksWatch reports whether err is that of an epoll_ctl for which the user has no watch left. The runtime's poller reports only
// that it does not watch a descriptor at all (ErrNoDeadline), and package net only the errno without the name of the call. A file
// for which there is no space has the same errno.
func lacksWatch(err error) bool {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Syscall == "epoll_ctl" && (errors.Is(call, syscall.ENOSPC) || errors.Is(call, os.ErrNoDeadline))
	}
	_, socket := errors.AsType[*net.OpError](err)
	return socket && errors.Is(err, syscall.ENOSPC)
}

// lacksPort reports whether err is that of a connection for which no local port is left, or of a listener that accepts any port. With
// IPv6 a connection has the same error if this side has no address.
func lacksPort(err error) bool {
	call, ok := errors.AsType[*os.SyscallError](err)
	if !ok {
		return false
	}
	at := addressOf(err)
	switch {
	case call.Syscall == "connect" && errors.Is(call, syscall.EAGAIN): // of UDP
		return true
	case call.Syscall == "connect" && sockerr.Is(call, syscall.EADDRNOTAVAIL):
		return at.Addr().Is4() && at.Port() != 0
	}
	return call.Syscall == "bind" && sockerr.Is(call, syscall.EADDRINUSE) && at.IsValid() && at.Port() == 0
}

// addressOf returns the address that an error of package net names, if it names one.
func addressOf(err error) netip.AddrPort {
	for {
		op, ok := errors.AsType[*net.OpError](err)
		if !ok {
			return netip.AddrPort{}
		}
		if a, ok := op.Addr.(interface{ AddrPort() netip.AddrPort }); ok {
			at := a.AddrPort()
			return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
		}
		err = op.Err
	}
}

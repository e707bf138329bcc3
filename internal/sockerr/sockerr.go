// Package sockerr compares socket errors with those of package syscall on every system, and provides an accept loop that depends on them.
package sockerr

import (
	"errors"
	"slices"
	"syscall"
)

// winsock maps errors of package syscall to the error numbers of Windows sockets. On Windows, package syscall gives these
// errors its own numbers, which no call returns. On other systems no error has the numbers of Windows.
var winsock = map[syscall.Errno]syscall.Errno{
	syscall.EACCES:          10013,
	syscall.EMFILE:          10024,
	syscall.ENOPROTOOPT:     10042,
	syscall.EPROTONOSUPPORT: 10043,
	syscall.EOPNOTSUPP:      10045,
	syscall.EADDRINUSE:      10048,
	syscall.EADDRNOTAVAIL:   10049,
	syscall.ENETUNREACH:     10051,
	syscall.ECONNABORTED:    10053,
	syscall.ECONNRESET:      10054,
	syscall.ENOBUFS:         10055,
	syscall.ETIMEDOUT:       10060,
	syscall.ECONNREFUSED:    10061,
	syscall.EHOSTUNREACH:    10065,
}

// Is is like errors.Is, except that an error of a Windows call matches the error of package syscall with the same meaning.
func Is(err, target error) bool {
	if errors.Is(err, target) {
		return true
	}
	e, _ := target.(syscall.Errno) //nolint:errorlint // it is what is compared with
	number, ok := winsock[e]
	return ok && errors.Is(err, number)
}

// ended lists the errors of Accept on a descriptor that is not, or no longer, a listening socket.
var ended = []syscall.Errno{syscall.EBADF, syscall.EINVAL, 10022 /* WSAEINVAL */, 10038 /* WSAENOTSOCK */}

// passes reports whether a listener whose Accept has failed with err may accept the next connection: either one connection failed before
// it was accepted, which Linux reports with network errors, or there was no descriptor, memory or epoll watch for it.
func passes(err error) bool {
	e, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(ended, e)
}

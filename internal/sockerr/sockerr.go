// Package sockerr compares the errors of sockets with those of package syscall, on every system, and has the accept loop that they decide.
package sockerr

import (
	"errors"
	"slices"
	"syscall"
)

// winsock maps errors of package syscall to the numbers of Windows sockets. On Windows package syscall gives these
// errors numbers of its own, which no call returns. On other systems no error has the numbers of Windows.
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

// Is is errors.Is, except that an error of a call of Windows matches the error of package syscall that has its meaning.
func Is(err, target error) bool {
	if errors.Is(err, target) {
		return true
	}
	e, _ := target.(syscall.Errno) //nolint:errorlint // it is what is compared with
	number, ok := winsock[e]
	return ok && errors.Is(err, number)
}

// ended are the errors of a call on what is no socket that listens, or not any more.
var ended = []syscall.Errno{syscall.EBADF, syscall.EINVAL, 10022 /* WSAEINVAL */, 10038 /* WSAENOTSOCK */}

// passes tells whether a listener whose Accept has failed with err may accept the next connection: what has failed is one connection
// before it was taken, of which Linux tells by the errors of the network, or there was no descriptor, memory or epoll watch for it.
func passes(err error) bool {
	e, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(ended, e)
}

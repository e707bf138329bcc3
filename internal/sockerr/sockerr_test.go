package sockerr

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// uncomparable is an error for which == panics.
type uncomparable []byte

func (uncomparable) Error() string { return "" }

func TestPasses(t *testing.T) {
	accept := func(e error) error {
		return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", e)}
	}
	const wsaemfile, wsaenotsock = syscall.Errno(10024), syscall.Errno(10038)
	for _, e := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSPC, syscall.EPERM,
		syscall.ECONNABORTED, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EPROTO, wsaemfile,
	} {
		require.True(t, passes(accept(e)), "%v", e)
	}
	for _, err := range []error{nil, io.EOF, net.ErrClosed, syscall.EBADF, syscall.EINVAL, wsaenotsock} {
		require.False(t, passes(accept(err)), "%v", err)
	}
}

func TestIs(t *testing.T) {
	op := func(e error) error {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("wsarecv", e)}
	}
	const wsaeconnreset, wsaeconnrefused = syscall.Errno(10054), syscall.Errno(10061)
	for _, c := range []struct {
		err, target error
		want        bool
	}{
		{op(syscall.ECONNRESET), syscall.ECONNRESET, true},
		{op(wsaeconnreset), syscall.ECONNRESET, true},
		{op(wsaeconnrefused), syscall.ECONNRESET, false},
		{op(wsaeconnrefused), syscall.ECONNREFUSED, true},
		{op(syscall.Errno(10053)), syscall.ECONNABORTED, true},
		{op(syscall.Errno(10055)), syscall.ENOBUFS, true},
		{op(syscall.Errno(10060)), syscall.ETIMEDOUT, true},
		{op(syscall.EPIPE), syscall.EPIPE, true},
		{op(wsaeconnreset), syscall.EPIPE, false},
		{op(io.EOF), io.EOF, true},
		{nil, syscall.ECONNRESET, false},
		{op(io.EOF), uncomparable{}, false},
	} {
		require.Equal(t, c.want, Is(c.err, c.target), "%v is %v", c.err, c.target)
	}
}

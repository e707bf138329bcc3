package sockerr

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A failing listener fails its first calls, each with an error of accept(2).
type failing struct {
	net.Listener
	fails []syscall.Errno
	conn  net.Conn
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.fails) == 0 {
		return l.conn, nil
	}
	e := l.fails[0]
	l.fails = l.fails[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", e)}
}

// TestAccept: an error that concerns one connection, or that passes, does not end a server.
func TestAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := net.Pipe()
		l := &failing{conn: conn, fails: []syscall.Errno{
			syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSPC, syscall.EPROTO, syscall.EHOSTUNREACH, syscall.EPERM,
		}}
		c, err := Accept(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, conn, c)

		l.fails = []syscall.Errno{syscall.EINVAL}
		_, err = Accept(t.Context(), l)
		require.ErrorIs(t, err, syscall.EINVAL, "it does not listen")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.fails = []syscall.Errno{syscall.ENOBUFS}
		_, err = Accept(ctx, l)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

package perf

import (
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A failing listener is one whose first calls fail, each with an error of accept(2).
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

// TestServerOutlastsAFailedAccept: clients that use up the descriptors do not end the server.
func TestServerOutlastsAFailedAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		require.NoError(t, client.Close())
		l := &failing{conn: conn, fails: []syscall.Errno{syscall.EMFILE, syscall.ENOBUFS, syscall.EPROTO}}
		require.NoError(t, (&server{}).serve(t.Context(), l, true), "the client has left")
		require.Empty(t, l.fails)
		l.fails = []syscall.Errno{syscall.EBADF}
		require.ErrorIs(t, (&server{}).serve(t.Context(), l, true), syscall.EBADF)
	})
}

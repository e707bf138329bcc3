package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// early is a context that has a deadline, and is not over when it has passed: so may that be whose timer is late.
type early struct {
	context.Context
	at time.Time
}

func (e early) Deadline() (time.Time, bool) { return e.at, true }

// TestDialMatchesTheDeadlineOfItsContext: the socket's deadline, too, equals the context's.
func TestDialMatchesTheDeadlineOfItsContext(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 0))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}).String()
	// Without an Accept they fill the backlog, and the next is not answered. Where the deadline passes before Dial
	// has a socket, package net returns another error, and there is one more attempt.
	for n := 0; !errors.Is(err, os.ErrDeadlineExceeded); n++ {
		require.Less(t, n, 50, "some attempt meets the deadline of its socket")
		var c net.Conn
		if c, err = Dial(early{t.Context(), time.Now().Add(100 * time.Millisecond)}, "tcp", addr, Options{}); err == nil {
			defer c.Close()
			continue
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.ErrorContains(t, err, "dial tcp "+addr, "the text is that of net")
	require.ErrorAs(t, err, new(*net.OpError))
}

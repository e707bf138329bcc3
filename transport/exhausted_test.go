package transport

import (
	"errors"
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

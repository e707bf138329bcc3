package rsocket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsTellTimeouts, like errors of TCP: if a deadline has passed, and if the peer no longer answers.
func TestErrorsTellTimeouts(t *testing.T) {
	gone := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	const wsaetimedout = syscall.Errno(10060) // as Windows has it
	for _, c := range []struct {
		err, is error
		timeout bool
	}{
		{os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, true},
		{notTaken(os.ErrDeadlineExceeded), os.ErrDeadlineExceeded, true},
		{endOf(fmt.Errorf("iwarp: connection lost: %w: %w", net.ErrClosed, gone)), syscall.ETIMEDOUT, true},
		{endOf(fmt.Errorf("iwarp: connection lost: %w: %w", net.ErrClosed, wsaetimedout)), wsaetimedout, true},
		{endOf(fmt.Errorf("iwarp: connection lost: %w: %w", net.ErrClosed, syscall.ECONNRESET)), syscall.ECONNRESET, false},
		{errReset, syscall.ECONNRESET, false},
		{net.ErrClosed, net.ErrClosed, false},
		{io.ErrUnexpectedEOF, io.ErrUnexpectedEOF, false},
	} {
		err := new(Conn).opError("read", c.err)
		require.ErrorIs(t, err, c.is)
		require.Equal(t, errors.Is(c.is, net.ErrClosed), errors.Is(err, net.ErrClosed), "%v", err)
		var told net.Error
		require.ErrorAs(t, err, &told)
		require.Equal(t, c.timeout, told.Timeout(), "%v", err)
	}
	err := new(Conn).opError("read", os.ErrDeadlineExceeded)
	require.Equal(t, os.ErrDeadlineExceeded, err.(*net.OpError).Err, "package tls asks it whether it is temporary") //nolint:errorlint // it is one
}

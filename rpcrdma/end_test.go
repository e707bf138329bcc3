package rpcrdma

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestRPR_21_TheRNICEnds below a listener: Accept ends, so that a server does.
func TestRPR_21_TheRNICEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(nil)
		require.NoError(t, err)
		inner, err := rnic.Listen(t.Context(), "pipe", "", nil)
		require.NoError(t, err)
		l := NewListener(inner, &Config{RNIC: rnic})
		served := make(chan error, 1)
		go func() { served <- echo(l) }()
		require.NoError(t, rnic.Close())
		select {
		case err := <-served:
			require.ErrorIs(t, err, net.ErrClosed)
		case <-time.After(time.Hour):
			t.Error("Accept ends")
		}
		_ = l.Close()
	})
}

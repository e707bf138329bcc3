package rsocket

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// patience bounds the waits of a test.
const patience = 20 * time.Second

func open(t testing.TB) *iwarp.RNIC {
	t.Helper()
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rnic.Close(), "the RNIC closes") })
	return rnic
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// where returns an address to listen at.
func where(network string) string {
	if network == "pipe" {
		return ""
	}
	return "127.0.0.1:0"
}

// listen makes a listener that ends with the test.
func listen(t testing.TB, rnic *iwarp.RNIC, network string, cfg *Config) *Listener {
	t.Helper()
	l, err := Listen(within(t), rnic, network, where(network), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// pair makes two ends of a stream, and closes them at the end of the test.
func pair(t testing.TB, network string, dials, accepts *Config) (dialled, accepted *Conn) {
	t.Helper()
	dialled, accepted = unclosedPair(t, open(t), network, dials, accepts)
	t.Cleanup(func() { closeBoth(dialled, accepted) })
	return dialled, accepted
}

func unclosedPair(t testing.TB, rnic *iwarp.RNIC, network string, dials, accepts *Config) (dialled, accepted *Conn) {
	t.Helper()
	l := listen(t, rnic, network, accepts)
	dialled, err := Dial(within(t), rnic, network, l.Addr().String(), dials)
	require.NoError(t, err)
	accepted, err = l.AcceptConn()
	require.NoError(t, err)
	return dialled, accepted
}

// closeBoth closes two ends at the same time, so that neither waits for the other to read.
func closeBoth(a, b *Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Close()
	}()
	_ = b.Close()
	<-done
}

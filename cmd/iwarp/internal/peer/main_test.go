package peer

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain also runs as the programs that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "listens":
			ctx, cancel := Left(context.Background(), os.Stdin)
			defer cancel()
			Announce(os.Stdout, &net.TCPAddr{IP: net.IPv6loopback, Port: 7})
			<-ctx.Done()
			return
		case "talks":
			fmt.Println("hello")
			return
		}
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // of the children: they need not wait for reports
	goleak.VerifyTestMain(m)
}

func TestChildEndsWithItsParent(t *testing.T) {
	k, err := Start(t.Context(), t.Output(), "listens")
	require.NoError(t, err)
	require.Equal(t, "[::1]:7", k.Addr)
	require.NoError(t, k.Stop())
}

func TestChildIsKilled(t *testing.T) {
	k, err := Start(t.Context(), t.Output(), "listens")
	require.NoError(t, err)
	require.ErrorContains(t, k.Kill(), "kill")
}

func TestChildThatDoesNotListen(t *testing.T) {
	_, err := Start(t.Context(), t.Output(), "talks")
	require.ErrorContains(t, err, `"hello\n"`)
}

func TestCongestionControlOfBothEnds(t *testing.T) {
	l, err := Listen("127.0.0.1", DefaultCC)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	c, err := Dial(l.Addr().String(), DefaultCC)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = Listen("127.0.0.1", "none of them")
	require.ErrorContains(t, err, `congestion control "none of them"`)
	_, err = Dial(l.Addr().String(), "none of them")
	require.ErrorContains(t, err, `congestion control "none of them"`)
}

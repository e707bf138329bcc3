package iwarp_test

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport"
)

// plainIO reports whether all connections of the tests use package net.
var plainIO = os.Getenv("IWARP_PLAIN_IO") == "1" || !transport.HasRawTCP

// netConn is the path of a TCP connection that uses package net.
const netConn = "net.Conn (*net.TCPConn)"

func TestStatsNameThePath(t *testing.T) {
	fast := "raw TCP"
	if plainIO {
		fast = netConn
	}
	for name, c := range map[string]struct {
		pairConfig
		path string
	}{
		"TCP":   {pairConfig{}, fast},
		"plain": {pairConfig{clientR: &iwarp.Config{PlainIO: true}, serverR: &iwarp.Config{PlainIO: true}}, netConn},
		"pipe":  {pairConfig{network: "pipe"}, "pipe"},
		"SCTP":  {pairConfig{network: "sctp+udp"}, "sctp+udp"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t, c.pairConfig)
			require.Equal(t, c.path, client.qp.Stats().Path)
			require.Equal(t, c.path, server.qp.Stats().Path)
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
			require.NoError(t, client.qp.Send(testContext(t)))
		})
	}
}

func TestEnvironmentChoosesPlainIO(t *testing.T) {
	t.Setenv("IWARP_PLAIN_IO", "1")
	client, server := connect(t, pairConfig{})
	require.Equal(t, netConn, client.qp.Stats().Path)
	require.Equal(t, netConn, server.qp.Stats().Path)
}

// wrappedConn is a user's own type.
type wrappedConn struct{ net.Conn }

// TestWrappedConnectionIsLogged: once for all connections of the type.
func TestWrappedConnectionIsLogged(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	logger := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), nil))
	client, server := newSide(t, &iwarp.Config{Logger: logger}), newSide(t, &iwarp.Config{Logger: logger})
	ctx := testContext(t)
	l, err := server.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	defer l.Close()
	for range 2 {
		go func() {
			if cr, err := l.Accept(ctx); err == nil {
				_, _ = cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd})
			}
		}()
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		require.NoError(t, err)
		qp, err := client.rnic.Client(ctx, &wrappedConn{c}, &iwarp.QPConfig{PD: client.pd})
		require.NoError(t, err)
		require.Equal(t, "net.Conn (*iwarp_test.wrappedConn)", qp.Stats().Path)
	}
	lines := 1
	if plainIO {
		lines = 0 // there is no faster path
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, lines, bytes.Count(log.Bytes(), []byte("package net")), "%s", log.String())
}

// writer makes an io.Writer of a function.
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

package exporter

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// get reads a path at an address.
func get(t *testing.T, addr, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	require.NoError(t, err)
	q.Close = true
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", b)
	return string(b)
}

// TestRNICsThatAreOpenAreServed, and no others.
func TestRNICsThatAreOpenAreServed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)

	s := NewSet()
	e, err := s.Serve(t.Context(), ":"+port)
	require.NoError(t, err)
	require.Equal(t, "http://"+addr+"/", e.URL())
	require.NotContains(t, get(t, addr, "/metrics"), `rnic="0"`)
	r, err := iwarp.Open(nil)
	require.NoError(t, err)
	s.Add(r)
	require.Contains(t, get(t, addr, "/metrics"), `iwarp_cq_overflows_total{rnic="0"} 0`)
	require.Contains(t, get(t, addr, "/state.json"), `"rnics":[{"id":0,`)
	require.Contains(t, get(t, addr, "/"), "page.js")
	require.NoError(t, s.Close(r))
	require.NotContains(t, get(t, addr, "/metrics"), `rnic="0"`)
	require.Eventually(t, func() bool { return strings.Contains(get(t, addr, "/state.json"), `"rnics":[]`) }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, e.Close())
}

// TestOtherNamesOfTheLoopbackAreRefused: a page of another site, whose name resolves to the loopback, reads nothing.
func TestOtherNamesOfTheLoopbackAreRefused(t *testing.T) {
	e, err := NewSet().Serve(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	defer e.Close()
	client := http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for _, path := range []string{"", "state.json", "metrics"} {
		for host, want := range map[string]int{"localhost": http.StatusOK, "attacker.example:9464": http.StatusMisdirectedRequest} {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL()+path, nil)
			require.NoError(t, err)
			q.Host = host
			a, err := client.Do(q)
			require.NoError(t, err)
			require.NoError(t, a.Body.Close())
			require.Equal(t, want, a.StatusCode, "/%s of %s", path, host)
		}
	}
}

// A once is a listener with one connection.
type once struct {
	conns chan net.Conn
	addr  net.Addr
}

func (l *once) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *once) Close() error   { return nil }
func (l *once) Addr() net.Addr { return l.addr }

// TestIdleConnectionsEnd: otherwise anyone on the network could use up the descriptors that iWARP connections need.
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		l := &once{conns: make(chan net.Conn, 1), addr: conn.LocalAddr()}
		l.conns <- conn
		s := bounded(http.NotFoundHandler())
		go func() { _ = s.Serve(l) }() // until the listener has no more connections
		_, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = io.Copy(io.Discard, client)
		require.NoError(t, err, "the server ends the connection after its answer")
		require.NoError(t, client.Close())
		close(l.conns)
	})
}

func TestAddressOfASecondProcess(t *testing.T) {
	for addr, want := range map[string]string{"": "", ":9464": ":9465", "127.0.0.1:1": "127.0.0.1:2"} {
		got, err := Next(addr)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, addr := range []string{"9464", ":0", ":65535", ":http"} {
		_, err := Next(addr)
		require.Error(t, err, addr)
	}
}

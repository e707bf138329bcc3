package rma

import (
	"crypto/tls"
	"go/build"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/selfsigned"
)

// TestRMA_43_ReadAndWrite: in all suites, over networks of each kind.
func TestRMA_43_ReadAndWrite(t *testing.T) {
	for name, p := range suites() {
		for _, network := range []string{"pipe", "tcp", "sctp+udp"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				p.network = network
				w := start(t, p)
				w.movesOctets()
			})
		}
	}
	t.Run("TLS alone", func(t *testing.T) {
		client, server := testTLS()
		w := start(t, plan{network: "tcp", plain: true, clientTLS: client, serverTLS: server})
		require.EqualValues(t, 1, w.client.Suite())
		w.movesOctets()
	})
	t.Run("TLS without the certificate of a client", func(t *testing.T) {
		client, server := testTLS()
		client.Certificates, server.ClientAuth = nil, tls.NoClientCert
		w := newPair(t, plan{network: "tcp", plain: true, clientTLS: client, serverTLS: server})
		require.ErrorIs(t, w.server.Serve(w.context(), w.qps[1]), ErrNoSuite, "it has no identity that keys could depend on")
	})
	t.Run("TLS without the certificate of a client, where that is allowed", func(t *testing.T) {
		client, server := testTLS()
		client.Certificates, server.ClientAuth = nil, tls.NoClientCert
		w := start(t, plan{
			network: "tcp", plain: true, clientTLS: client, serverTLS: server,
			client: ClientConfig{Insecure: true}, server: ServerConfig{Insecure: true},
		})
		require.Zero(t, w.client.Suite())
		w.movesOctets()
	})
}

func (w *pair) movesOctets() {
	w.Helper()
	h, portal := w.opens(), w.portal(4)
	for _, n := range []int{0, 1, 16, 4096} {
		want := octets(byte(n), n)
		end := does(w, portal, Command{Op: Write, Handle: h, Off: 8192, Buf: want, Tag: 7})
		require.NoError(w, end.Err)
		require.Equal(w, n, end.N)
		require.EqualValues(w, 7, end.Tag)
		w.mem.View(func(b []byte) { require.Equal(w, want, b[8192:8192+n]) })
		for _, direct := range []bool{false, true} {
			got := make([]byte, n)
			end = does(w, portal, Command{Op: Read, Handle: h, Off: 8192, Buf: got, Direct: direct})
			require.NoError(w, end.Err)
			require.Equal(w, want, got)
		}
	}
}

// testTLS makes the configurations of both sides, each with a certificate.
func testTLS() (client, server *tls.Config) {
	cert, pool := selfsigned.New("127.0.0.1")
	mine := []tls.Certificate{cert}
	client = &tls.Config{ServerName: "127.0.0.1", Certificates: mine, RootCAs: pool, MinVersion: tls.VersionTLS13}
	server = &tls.Config{Certificates: mine, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	return client, server
}

// TestRMA_1_OnThePublicVerbs: nothing below them is imported.
func TestRMA_1_OnThePublicVerbs(t *testing.T) {
	const module = "github.com/goiwarp/iwarp"
	p, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	for _, path := range p.Imports {
		if below, ours := strings.CutPrefix(path, module); ours {
			require.Contains(t, []string{"", "/stag", "/regionkey", "/solicit", "/internal/bucket", "/internal/closed", "/internal/logkey", "/internal/lru", "/internal/names", "/internal/quota", "/internal/recent", "/rma/internal/op", "/rma/internal/wire"}, below)
		}
	}
}

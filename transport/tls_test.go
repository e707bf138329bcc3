package transport

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/selfsigned"
)

// testTLS returns configurations for two peers that trust each other.
func testTLS() (client, server *tls.Config) {
	cert, roots := selfsigned.New("peer.test")
	return &tls.Config{RootCAs: roots, ServerName: "peer.test"}, &tls.Config{Certificates: []tls.Certificate{cert}}
}

// An eagerConn reports the end of the connection together with the last octets, as an io.Reader may.
type eagerConn struct {
	net.Conn
	last atomic.Bool // what is read from now on comes before the end
}

func (c *eagerConn) Read(p []byte) (n int, err error) {
	for err == nil && n < len(p) {
		var m int
		m, err = c.Conn.Read(p[n:])
		if n += m; !c.last.Load() {
			break
		}
	}
	return n, err
}

// TestEndThatComesWithTheLastOctets of TLS: they are read, and whether the peer has told the end is known after them.
func TestEndThatComesWithTheLastOctets(t *testing.T) {
	client, server := testTLS()
	for name, c := range map[string]struct {
		end  func(secured, below net.Conn) error
		want error
	}{
		"told":     {func(secured, _ net.Conn) error { return secured.Close() }, io.EOF},
		"not told": {func(_, below net.Conn) error { return below.Close() }, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := Pipe(PipeOptions{})
			eager := &eagerConn{Conn: a}
			accepted := make(chan net.Conn, 1)
			go func() {
				s, _ := TLSServer(t.Context(), b, server)
				accepted <- s
			}()
			reader, err := TLSClient(t.Context(), eager, client)
			require.NoError(t, err)
			writer := <-accepted
			require.NotNil(t, writer)
			_, err = writer.Write([]byte("the last octets"))
			require.NoError(t, err)
			require.NoError(t, c.end(writer, b))
			eager.last.Store(true)
			got := make([]byte, 15)
			_, err = io.ReadFull(reader, got)
			require.NoError(t, err)
			require.Equal(t, "the last octets", string(got))
			_, err = reader.Read(got)
			require.ErrorIs(t, err, c.want)
			require.NoError(t, a.Close())
		})
	}
}

// TestTLS13IsTheLeast of what either side's configuration allows, and of one that GetConfigForClient returns.
func TestTLS13IsTheLeast(t *testing.T) {
	client, server := testTLS()
	chosen := server.Clone()
	chosen.MinVersion = tls.VersionTLS12
	own := func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil } // the server's
	other := func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	fails := func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, io.ErrNoProgress }
	for name, c := range map[string]struct {
		choose func(*tls.ClientHelloInfo) (*tls.Config, error)
		most   uint16
		want   string
	}{
		"the server's":                 {nil, tls.VersionTLS13, ""},
		"the server's, an old client":  {nil, tls.VersionTLS12, "tls: client offered only unsupported versions: [303]"},
		"no other":                     {own, tls.VersionTLS13, ""},
		"no other, an old client":      {own, tls.VersionTLS12, "tls: client offered only unsupported versions: [303]"},
		"another one":                  {other, tls.VersionTLS13, ""},
		"another one, an old client":   {other, tls.VersionTLS12, "tls: client offered only unsupported versions: [303]"},
		"the one is not to be had now": {fails, tls.VersionTLS13, io.ErrNoProgress.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := Pipe(PipeOptions{})
			cfg := server.Clone()
			cfg.MinVersion, cfg.GetConfigForClient = tls.VersionTLS12, c.choose
			accepted := make(chan error, 1)
			go func() {
				_, err := TLSServer(t.Context(), b, cfg)
				accepted <- err
			}()
			asks := client.Clone()
			asks.MaxVersion = c.most
			secured := tls.Client(a, asks)
			err := secured.HandshakeContext(t.Context())
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, <-accepted)
				require.Equal(t, uint16(tls.VersionTLS13), secured.ConnectionState().Version)
			} else {
				require.Error(t, err)
				require.EqualError(t, <-accepted, c.want)
			}
			require.Equal(t, uint16(tls.VersionTLS12), chosen.MinVersion, "it is not changed")
			require.NoError(t, a.Close())
		})
	}
}

// TestSessionsOfTLSAreResumed where the program has keys for their tickets, and nowhere else: each connection has a copy of the
// configuration, and so keys of its own.
func TestSessionsOfTLSAreResumed(t *testing.T) {
	for name, keys := range map[string][][32]byte{"without keys": nil, "with keys": {{1}}} {
		t.Run(name, func(t *testing.T) {
			client, server := testTLS()
			client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			if keys != nil {
				server.SetSessionTicketKeys(keys)
			}
			for i := range 2 {
				a, b := Pipe(PipeOptions{})
				accepted := make(chan error, 1)
				go func() {
					c, err := TLSServer(t.Context(), b, server)
					if err == nil {
						_, err = c.Write([]byte("x"))
					}
					accepted <- err
				}()
				c, err := TLSClient(t.Context(), a, client)
				require.NoError(t, err)
				_, err = io.ReadFull(c, make([]byte, 1)) // the ticket comes before it
				require.NoError(t, err)
				require.NoError(t, <-accepted)
				require.Equal(t, keys != nil && i > 0, c.(*tls.Conn).ConnectionState().DidResume)
				require.NoError(t, a.Close())
			}
		})
	}
}

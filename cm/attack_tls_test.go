package cm_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// TestCM_34_ExpectServerStopsARelayBetweenTwoConnectionsOfTLS: the frames of a set-up are not bound to the TLS connection
// that carries them. A host with a certificate that the client accepts, but without a key, passes them on to another server
// over a second connection, and stays between both. The client detects it by the name that the server sends.
func TestCM_34_ExpectServerStopsARelayBetweenTwoConnectionsOfTLS(t *testing.T) {
	for name, expects := range map[string]bool{"nothing is expected": false, "another name is expected": true} {
		t.Run(name, func(t *testing.T) {
			ca, sa := authsOf(t, func(client, _ *cm.Config) {
				if expects {
					client.ExpectServer = func(p iwarp.Peer) error { return fmt.Errorf("it is %q", p.Name) }
				}
			})
			server, servers := selfsigned.New("iwarp.test")
			h := newHost(t, sa, "pipe", &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{server}}}, nil)
			c := newSite(t, ca, nil)
			own, owns := selfsigned.New("iwarp.test")
			m := &relay{}
			var all sync.WaitGroup
			near := m.betweenTLS(t, &all, h.addr, own, &tls.Config{RootCAs: servers, ServerName: "iwarp.test"})
			qc := c.asks()
			qc.TLS = &tls.Config{RootCAs: owns, ServerName: "iwarp.test"}
			qp, err := c.rnic.Client(t.Context(), near, qc)
			if expects {
				require.ErrorIs(t, err, iwarp.ErrAuth)
				require.ErrorContains(t, err, `it is "server-000000001"`)
				require.ErrorIs(t, h.next().err, iwarp.ErrAuth)
				require.Zero(t, m.sent.Load(), "the client has sent nothing more")
			} else {
				require.NoError(t, err)
				o := h.next()
				require.NoError(t, o.err)
				require.Positive(t, m.sent.Load(), "the relay has read what comes next")
				wantPeers(t, qp, o.qp, cm.ModeB, cm.SuiteHMAC)
				require.Equal(t, export(t, qp), export(t, o.qp), "the keys of the set-up are those of both ends, and not of the relay")
				require.NoError(t, qp.Abort())
				require.NoError(t, o.qp.Abort())
			}
			all.Wait()
		})
	}
}

// betweenTLS is like between, with two TLS connections: the client's one ends at a host with this certificate.
func (m *relay) betweenTLS(t testing.TB, all *sync.WaitGroup, addr string, own tls.Certificate, onward *tls.Config) net.Conn {
	t.Helper()
	l, err := transport.Listen(t.Context(), "pipe", wiretest.Local("pipe"), transport.Options{})
	require.NoError(t, err)
	defer l.Close()
	near, err := transport.Dial(t.Context(), "pipe", l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	c, err := transport.Dial(t.Context(), "pipe", addr, transport.Options{})
	require.NoError(t, err)
	all.Go(func() {
		m.run(tls.Server(far, &tls.Config{Certificates: []tls.Certificate{own}}), tls.Client(c, onward))
	})
	return near
}

package iwarp_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// An authority issues certificates.
type authority struct {
	testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{TB: t, key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

// issue makes a certificate for iwarp.test that expires at a time and has these usages.
func (a *authority) issue(ends time.Time, usages ...x509.ExtKeyUsage) []tls.Certificate {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"iwarp.test"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(a, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(a, err)
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// A mutual is a listener that demands a certificate from each client, and its RNIC.
type mutual struct {
	*side
	ca       *authority
	cert     []tls.Certificate
	network  string
	addr     string
	accepted chan *iwarp.QP

	mu  sync.Mutex
	log bytes.Buffer
}

func (m *mutual) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(p)
}

func newMutual(t *testing.T, network string, change ...func(*iwarp.ListenConfig)) *mutual {
	m := &mutual{ca: newAuthority(t), network: network, accepted: make(chan *iwarp.QP, 1)}
	m.side = newSide(t, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(m, nil))})
	m.cert = m.ca.issue(time.Now().Add(time.Hour), x509.ExtKeyUsageServerAuth)
	ctx := testContext(t)
	lc := &iwarp.ListenConfig{TLS: &tls.Config{Certificates: m.cert, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: m.ca.pool()}}
	for _, f := range change {
		f(lc)
	}
	l, err := m.rnic.Listen(ctx, network, wiretest.Local(network), lc)
	require.NoError(t, err)
	m.addr = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			cr, err := l.Accept(ctx)
			if err != nil {
				return
			}
			qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: m.pd})
			if err != nil {
				continue
			}
			m.accepted <- qp
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		serving.Wait()
	})
	return m
}

// trusts returns the configuration of a client that trusts the listener, and has these certificates.
func (m *mutual) trusts(own []tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: m.ca.pool(), ServerName: "iwarp.test", Certificates: own}
}

// dials connects a client, and returns both ends.
func (m *mutual) dials(c *side, cfg *tls.Config) (client, server *iwarp.QP) {
	m.Helper()
	client, err := c.rnic.Dial(testContext(m.T), m.network, m.addr, &iwarp.QPConfig{PD: c.pd, TLS: cfg})
	require.NoError(m, err)
	return client, <-m.accepted
}

// logs waits until the log of the listener has so many refusals, and returns them.
func (m *mutual) logs(refusals int) string {
	m.Helper()
	var text string
	require.Eventually(m, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		text = m.log.String()
		return strings.Count(text, "connection refused during set-up") >= refusals
	}, 10*time.Second, time.Millisecond)
	return text
}

// identityOf returns what QP.Peer returns for the holder of a certificate.
func identityOf(c []tls.Certificate) (kind uint8, name [16]byte) {
	sum := sha256.Sum256(c[0].Leaf.RawSubjectPublicKeyInfo)
	return iwarp.PeerCertificate, [16]byte(sum[:])
}

// TestARCH_30_MutualTLSTellsEachSideTheOther moves data between two ends that have both shown a certificate, over a
// socket and the pipe. Each end knows the other's key.
func TestARCH_30_MutualTLSTellsEachSideTheOther(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			m, c := newMutual(t, network), newSide(t, nil)
			var ids [][32]byte
			for range 2 {
				own := m.ca.issue(time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth)
				client, server := m.dials(c, m.trusts(own))
				for _, end := range []struct {
					qp    *iwarp.QP
					other []tls.Certificate
				}{{client, m.cert}, {server, own}} {
					peer, known := end.qp.Peer()
					require.True(t, known)
					kind, name := identityOf(end.other)
					require.Equal(t, kind, peer.Kind)
					require.Equal(t, name, peer.Name)
					require.Equal(t, "TLS", end.qp.Stats().Path)
				}
				of, _ := server.Peer()
				ids = append(ids, of.ID)

				mine, err := client.Export("test", nil, 32)
				require.NoError(t, err)
				theirs, err := server.Export("test", []byte{}, 32)
				require.NoError(t, err)
				require.Equal(t, theirs, mine, "both have the keys of the connection, and an empty context is none")

				mem, mr := m.register(1<<16, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
				src, local := c.register(1<<17, stag.LocalWrite, nil)
				for i := range src[:1<<16] {
					src[i] = byte(i * 7)
				}
				ctx := testContext(t)
				require.NoError(t, client.RDMAWrite(ctx, mr.Advertise(0, 1<<16), local.Slice(0, 1<<16)))
				require.NoError(t, client.RDMARead(ctx, local.Slice(1<<16, 1<<16), mr.Advertise(0, 1<<16)))
				require.Equal(t, src[:1<<16], src[1<<16:])
				require.NoError(t, client.Abort())
				<-server.Done()
				theirs, err = server.Export("test", nil, 32)
				require.NoError(t, err, "keys of TLS are there after the end")
				require.Equal(t, theirs, mine)
				require.Equal(t, src[:1<<16], mem)
			}
			require.NotEqual(t, ids[0], ids[1], "two keys, two identities")
		})
	}
}

// TestARCH_30_MutualTLSRefuses: a client without an acceptable certificate is refused once. The error tells the client
// what to check, and tells the listener's operator which client it was. The listener goes on.
func TestARCH_30_MutualTLSRefuses(t *testing.T) {
	hour, ago := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		own  func(m *mutual) []tls.Certificate
		logs string
	}{
		"no certificate": {func(*mutual) []tls.Certificate { return nil }, "tls: client didn't provide a certificate"},
		"of another authority": {
			func(m *mutual) []tls.Certificate { return newAuthority(m).issue(hour, x509.ExtKeyUsageClientAuth) },
			"x509: certificate signed by unknown authority",
		},
		"expired": {
			func(m *mutual) []tls.Certificate { return m.ca.issue(ago, x509.ExtKeyUsageClientAuth) },
			"x509: certificate has expired or is not yet valid",
		},
		"of a server": {
			func(m *mutual) []tls.Certificate { return m.ca.issue(hour, x509.ExtKeyUsageServerAuth) },
			"x509: certificate specifies an incompatible key usage",
		},
	} {
		for _, network := range []string{"tcp", "pipe"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				m, client := newMutual(t, network), newSide(t, nil)
				cfg := m.trusts(nil)
				own := c.own(m)
				cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if own == nil {
						return new(tls.Certificate), nil
					}
					return &own[0], nil // even if it is from an authority that the listener has not named
				}
				_, err := client.rnic.Dial(testContext(t), network, m.addr, &iwarp.QPConfig{PD: client.pd, TLS: cfg, MPA: iwarp.MPAOptions{NoFallback: true}})
				require.ErrorContains(t, err, "iwarp: dial "+network+" "+m.addr+": ")
				// A reset may overtake the alert with the reason.
				require.Regexp(t, "TLS: the peer has refused the connection: tls: .*certificate|it may have refused the certificate of this side", err)
				require.Contains(t, m.logs(1), c.logs)

				_, server := m.dials(client, m.trusts(m.ca.issue(hour, x509.ExtKeyUsageClientAuth)))
				require.NoError(t, server.Abort(), "the listener goes on")
			})
		}
	}
}

// TestARCH_30_MutualTLSRefusesTheListener: the client ends the connection before it sends anything of its own.
func TestARCH_30_MutualTLSRefusesTheListener(t *testing.T) {
	m, client := newMutual(t, "pipe"), newSide(t, nil)
	own := m.ca.issue(time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth)
	for want, cfg := range map[string]*tls.Config{
		"x509: certificate signed by unknown authority":             {RootCAs: newAuthority(t).pool(), ServerName: "iwarp.test", Certificates: own},
		"x509: certificate is valid for iwarp.test, not other.test": {RootCAs: m.ca.pool(), ServerName: "other.test", Certificates: own},
	} {
		_, err := client.rnic.Dial(testContext(t), "pipe", m.addr, &iwarp.QPConfig{PD: client.pd, TLS: cfg})
		require.ErrorContains(t, err, "TLS handshake: tls: failed to verify certificate: "+want)
		var unverified *tls.CertificateVerificationError
		require.ErrorAs(t, err, &unverified)
	}
	m.logs(2)
	_, server := m.dials(client, m.trusts(own))
	require.NoError(t, server.Abort(), "the listener goes on")
}

// TestARCH_30_TLSOnOneSideOnly: whichever side uses TLS, the listener refuses the connection, and goes on.
func TestARCH_30_TLSOnOneSideOnly(t *testing.T) {
	m, client := newMutual(t, "tcp"), newSide(t, nil)
	own := m.ca.issue(time.Now().Add(time.Hour), x509.ExtKeyUsageClientAuth)
	_, err := client.rnic.Dial(testContext(t), "tcp", m.addr, &iwarp.QPConfig{PD: client.pd, MPA: iwarp.MPAOptions{NoFallback: true}})
	require.ErrorContains(t, err, "the peer closed the connection before it sent an MPA Reply; it may speak another protocol, or expect TLS (QPConfig.TLS)")
	require.Contains(t, m.logs(1), "TLS handshake: the peer does not use TLS")
	_, server := m.dials(client, m.trusts(own))
	require.NoError(t, server.Abort(), "the listener goes on")

	plain := newMutual(t, "pipe", func(lc *iwarp.ListenConfig) { lc.TLS = nil })
	_, err = client.rnic.Dial(testContext(t), "pipe", plain.addr, &iwarp.QPConfig{PD: client.pd, TLS: plain.trusts(own)})
	require.ErrorContains(t, err, "TLS handshake: the peer closed the connection; it may not use TLS: ")
	require.Contains(t, plain.logs(1), "the peer uses TLS: set ListenConfig.TLS")
	_, server = plain.dials(client, nil)
	_, known := server.Peer()
	require.False(t, known, "a plain peer has no identity")
	require.NoError(t, server.Abort(), "the listener goes on")
}

// TestARCH_30_RefusalByTLSIsTheAnswer: Dial reports the peer's refusal, and does not try again with revision 1.
func TestARCH_30_RefusalByTLSIsTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ca, client := newAuthority(t), newSide(t, nil)
		hour := time.Now().Add(time.Hour)
		server := &tls.Config{
			Certificates: ca.issue(hour, x509.ExtKeyUsageServerAuth), ClientAuth: tls.RequireAnyClientCert,
			VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
				synctest.Wait() // until the client waits for the Reply
				return errors.New("withdrawn")
			},
		}
		addr := wiretest.Serve(t, func(p *wiretest.Peer) { // one connection, and no other
			require.Error(p, tls.Server(p.Conn, server).HandshakeContext(testContext(t)))
			synctest.Wait() // until the client has the alert, which a reset could discard
		})
		own := &tls.Config{RootCAs: ca.pool(), ServerName: "iwarp.test", Certificates: ca.issue(hour, x509.ExtKeyUsageClientAuth)}
		_, err := client.rnic.Dial(testContext(t), "pipe", addr, &iwarp.QPConfig{PD: client.pd, TLS: own})
		require.EqualError(t, err, "iwarp: dial pipe "+addr+": TLS: the peer has refused the connection: tls: bad certificate")
	})
}

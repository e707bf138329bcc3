package cm

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// certificate makes one of 127.0.0.1 that signs itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestCM_45_46_HandshakesOfTLS are bounded, and verify the name of each target's host without one
// configuration for each.
func TestCM_45_46_HandshakesOfTLS(t *testing.T) {
	cert, roots := certificate(t)
	server, client := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
	l, err := server.rnic.Listen(t.Context(), "tcp", "127.0.0.1:0", &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	defer func() { cancel(); _ = l.Close(); <-done }()
	go func() {
		defer close(done)
		for {
			cr, err := l.Accept(ctx)
			if err != nil {
				return
			}
			_, _ = cr.Accept(ctx, server.config())
		}
	}()
	var secure gauge
	qc := client.config()
	qc.TLS = &tls.Config{RootCAs: roots}
	qc.SetupTrace = &iwarp.SetupTrace{
		Enter: func(_ context.Context, s iwarp.SetupStage) error {
			if s == iwarp.StageSecure {
				secure.add(1)
			}
			return nil
		},
		Leave: func(s iwarp.SetupStage, _ error) {
			if s == iwarp.StageSecure {
				secure.add(-1)
			}
		},
	}
	targets := func(yield func(Target) bool) {
		for range 30 {
			if !yield(Target{Network: "tcp", Addr: l.Addr().String()}) {
				return
			}
		}
	}
	o := &Options{RNIC: client.rnic, QP: qc, Stage: [8]int{StageSecure: 3}}
	_, all := collect(t, DialMany(t.Context(), targets, o))
	require.Zero(t, countFailed(all), "%v", all[0].Err)
	require.LessOrEqual(t, secure.most.Load(), int64(3))
	require.Empty(t, qc.TLS.ServerName, "the configuration is not changed")
	require.NotZero(t, all[0].Times[StageSecure])
}

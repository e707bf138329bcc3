package setup

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/transport"
)

// TestHandshakesOfTLSThatAreGivenUp: the counters and the log contain the reason, which package tls does not report.
func TestHandshakesOfTLSThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := newManager(t)
		m.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		cert, _ := selfsigned.New("iwarp.test")
		l := listens(t, m, ListenConfig{MaxHalfOpen: 1, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
		calls(t, l, nil)
		time.Sleep(time.Second)
		calls(t, l, nil)
		time.Sleep(time.Minute)
		calls(t, l, []byte("GET / HTTP/1.1\r\n\r\n"))
		synctest.Wait()
		refused, _ := m.Outcomes()
		require.Contains(t, log.String(), "TLS handshake: given up for a younger connection")
		require.Contains(t, log.String(), "TLS handshake: nothing has come within ListenConfig.ProgressTimeout")
		require.Equal(t, counters.Setups{counters.CauseEvicted: 1, counters.CauseNoProgress: 1, counters.CauseTLS: 1}, refused)
	})
}

// TestProgressIsThatOfThePeer: the time that a TLS callback takes does not count as time without progress.
func TestProgressIsThatOfThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		cert, roots := selfsigned.New("iwarp.test")
		l := listens(t, m, ListenConfig{TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			time.Sleep(3 * time.Second) // ProgressTimeout is 2 s
			return &cert, nil
		}}})
		own, _ := local(t)
		own.TLS = &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}
		dialled := make(chan error, 1)
		go func() { dialled <- m.Dial(someTime(t), "pipe", l.Addr().String(), own) }()
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		its, _ := local(t)
		require.NoError(t, q.Accept(someTime(t), its))
		require.NoError(t, <-dialled)
	})
}

// TestListenerWithoutACertificate: such a listener would refuse all clients.
func TestListenerWithoutACertificate(t *testing.T) {
	m := newManager(t)
	for name, c := range map[string]*tls.Config{
		"": {ClientAuth: tls.RequireAnyClientCert}, "certificate": {Certificates: make([]tls.Certificate, 1)},
		"callback": {GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }},
		"choice":   {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }},
	} {
		l, err := m.Listen(someTime(t), "pipe", "", ListenConfig{MaxHalfOpen: 1, TLS: c})
		if name == "" {
			require.EqualError(t, err, "listen: ListenConfig.TLS has no Certificates, GetCertificate or GetConfigForClient")
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, l.Close())
	}
}

// TestClientThatTLSRefuses: the error says so, and not that the peer may know only revision 1, which would cause a
// second attempt.
func TestClientThatTLSRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		cert, roots := selfsigned.New("iwarp.test")
		a, b := transport.Pipe(transport.PipeOptions{})
		defer b.Close()
		refused := make(chan error, 1)
		go func() {
			cfg := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}
			refused <- tls.Server(b, cfg).HandshakeContext(t.Context())
		}()
		own, _ := local(t)
		own.TLS = &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}
		err := m.Client(someTime(t), a, own)
		require.ErrorContains(t, <-refused, "client didn't provide a certificate")
		require.EqualError(t, err, "TLS: the peer has refused the connection: tls: certificate required")
		require.NotErrorIs(t, err, errUnsupported)
		_, failed := m.Outcomes()
		require.Equal(t, counters.Setups{counters.CauseTLS: 1}, failed)
	})
}

// TestProgressIsWatchedDuringReads: only during reads, and no longer once the Request is complete.
func TestProgressIsWatchedDuringReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		givenUp := 0
		a, b := net.Pipe()
		p := progresses(a, limit, func() { givenUp++ })
		read := func() {
			go func() {
				time.Sleep(2 * limit)
				_, _ = b.Write([]byte{1})
			}()
			_, err := p.Read(make([]byte, 1))
			require.NoError(t, err)
			synctest.Wait()
		}
		time.Sleep(2 * limit)
		require.Zero(t, givenUp, "this side has not read")
		read()
		require.Equal(t, 1, givenUp)
		time.Sleep(2 * limit)
		require.Equal(t, 1, givenUp)
		p.settled()
		read()
		require.Equal(t, 1, givenUp)
	})
}

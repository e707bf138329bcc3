package cm

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
)

// TestCM_45_46_HandshakesOfTLS: they are bounded, and verify the name of each target's host without a
// configuration for each.
func TestCM_45_46_HandshakesOfTLS(t *testing.T) {
	cert, roots := selfsigned.New("127.0.0.1")
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

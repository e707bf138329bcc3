package monitor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openRNIC opens an RNIC that ends with the test.
func openRNIC(t testing.TB, cfg *iwarp.Config) (*iwarp.RNIC, *iwarp.PD) {
	t.Helper()
	r, err := iwarp.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	pd, err := r.AllocPD()
	require.NoError(t, err)
	return r, pd
}

// pairs connects n clients of the first RNIC with the second over the pipe, and returns the clients.
func pairs(t testing.TB, n int, client, server *iwarp.RNIC, cpd, spd *iwarp.PD) []*iwarp.QP {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := server.Listen(ctx, "pipe", "", nil)
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		for range n {
			cr, err := l.Accept(ctx)
			if err == nil {
				_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: spd})
			}
			accepted <- err
		}
	}()
	qps := make([]*iwarp.QP, n)
	for i := range qps {
		qps[i], err = client.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: cpd})
		require.NoError(t, err)
		require.NoError(t, <-accepted)
	}
	return qps
}

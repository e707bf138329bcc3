// Package rnictest provides RNICs and connections for tests of packages above the verbs.
package rnictest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// Open opens an RNIC that is closed at the end of the test.
func Open(t testing.TB, cfg *iwarp.Config) (*iwarp.RNIC, *iwarp.PD) {
	t.Helper()
	r, err := iwarp.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(), "the RNIC closes") })
	pd, err := r.AllocPD()
	require.NoError(t, err)
	return r, pd
}

// Pairs connects n QPs of the client RNIC to the server RNIC over the pipe, and returns the client QPs.
func Pairs(t testing.TB, n int, client, server *iwarp.RNIC, cpd, spd *iwarp.PD) []*iwarp.QP {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := server.Listen(ctx, "pipe", "", nil)
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // it only listened
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

package tracing

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rma"
)

// TestTransfersOfAnExecutorAreSpans, one each; the span of a failed transfer has its outcome.
func TestTransfersOfAnExecutorAreSpans(t *testing.T) {
	r, here, there := record(t), newSide(t, 0), newSide(t, 0)
	server := rma.NewServer(&rma.ServerConfig{PD: there.pd, Insecure: true, PullTimeout: 10 * time.Second})
	_, err := server.Register(7, rma.NewMemory(make([]byte, 10_000)), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	addr := there.listens(t, func(cr *iwarp.ConnRequest) {
		cfg := iwarp.QPConfig{PD: there.pd}
		err := rma.Prepare(there.rnic, &cfg, 64, 0)
		if err == nil {
			var qp *iwarp.QP
			if qp, err = cr.Accept(ctx, &cfg); err == nil {
				err = server.Serve(ctx, qp)
			}
		}
		served <- err
	})
	cfg := iwarp.QPConfig{PD: here.pd}
	require.NoError(t, rma.Prepare(here.rnic, &cfg, 0, 64))
	qp, err := here.rnic.Dial(timely(t), "pipe", addr, &cfg)
	require.NoError(t, err)
	client, err := rma.NewClient(timely(t), qp, &rma.ClientConfig{PD: here.pd, Insecure: true, OpTimeout: 20 * time.Second})
	require.NoError(t, err)
	region, err := client.Open(timely(t), 7, rma.MayRead|rma.MayWrite)
	require.NoError(t, err)
	portal, err := client.Portal(4)
	require.NoError(t, err)
	e := r.Executor(rma.NewExecutor(portal))

	n, err := e.WriteAt(timely(t), region, make([]byte, 9000), 500)
	require.NoError(t, err)
	require.Equal(t, 9000, n)
	span := r.only(t)
	require.Equal(t, "iwarp.rma.write", span.Name)
	require.Equal(t, map[string]any{"iwarp.rma.region": int64(7), "iwarp.rma.offset": int64(500), "iwarp.octets": int64(9000)}, attributesOf(&span))

	_, err = e.ReadAt(timely(t), region, make([]byte, 100), 9950)
	require.ErrorIs(t, err, rma.ErrBounds)
	span = r.only(t)
	require.Equal(t, "iwarp.rma.read", span.Name)
	require.Equal(t, "outside_of_the_region", attributesOf(&span)["error.type"])

	_, err = e.ReadAt(timely(t), nil, make([]byte, 1), 0)
	require.ErrorContains(t, err, "rma: the Handle is of another Client")
	require.Empty(t, r.take())

	require.NoError(t, client.Close())
	cancel()
	if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
		require.ErrorContains(t, err, "closed")
	}
}

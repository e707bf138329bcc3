package rpc

import (
	"bytes"
	"context"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connected returns both ends of a connection over a pipe, until the end of the test.
func connected(t *testing.T, shape Shape) (*Client, *Server) {
	t.Helper()
	r, err := iwarp.Open(nil)
	require.NoError(t, err)
	pd, err := r.AllocPD()
	require.NoError(t, err)
	c, err := NewClient(r, pd, shape, func(n int) []byte { return bytes.Repeat([]byte{7}, n) })
	require.NoError(t, err)
	s, err := NewServer(r, pd, shape, bytes.Repeat([]byte{9}, shape.Region))
	require.NoError(t, err)
	ctx := context.Background()
	l, err := r.Listen(ctx, "pipe", "", nil)
	require.NoError(t, err)
	served, accepted := make(chan error, 1), make(chan struct{})
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			_, err = cr.Accept(ctx, s.Config(pd))
		}
		close(accepted)
		if err == nil {
			err = s.Serve()
		}
		served <- err
	}()
	_, err = r.Dial(ctx, "pipe", l.Addr().String(), c.Config(pd))
	require.NoError(t, err)
	<-accepted // Dial may return earlier
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.NoError(t, r.Close())
		require.ErrorIs(t, <-served, iwarp.ErrFlushed, "the end of the QP")
	})
	return c, s
}

func TestOctetsMove(t *testing.T) {
	for _, kind := range []Kind{Get, Put, PutInside} {
		for _, depth := range []int{1, 5, batch + 1} {
			synctest.Test(t, func(t *testing.T) {
				shape := Shape{Kind: kind, Size: 512, Region: 8 << 10, Depth: depth, CRC: true}
				c, s := connected(t, shape)
				for range 3 {
					require.NoError(t, c.Run(100))
				}
				require.NoError(t, c.Run(1), "fewer than the depth")
				times, err := c.Timed(3, nil)
				require.NoError(t, err)
				require.Len(t, times, 3)
				if kind == Get {
					for _, slot := range c.slots {
						require.Equal(t, bytes.Repeat([]byte{9}, shape.Size), slot.mem)
					}
					return
				}
				require.Contains(t, string(s.mem), string(bytes.Repeat([]byte{7}, shape.Size)))
				require.Zero(t, bytes.Count(s.mem, []byte{7})%shape.Size, "whole operations")
			})
		}
	}
}

// TestInvalidation: each operation has an STag of its own, which is invalid afterwards.
func TestInvalidation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connected(t, Shape{Kind: Get, Size: 64, Region: 64, Depth: 1})
		require.NoError(t, c.Run(1))
		first := c.slots[0].stag
		require.NoError(t, c.Run(1))
		require.NotEqual(t, first, c.slots[0].stag)
		wc := iwarp.WC{Op: iwarp.OpRecv, Len: responseLen, STag: first}
		_, err := c.ended(&wc)
		require.ErrorContains(t, err, "has invalidated")
	})
}

func TestWrongRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := connected(t, Shape{Kind: Get, Size: 64, Region: 128, Depth: 2})
		for _, q := range []request{{slot: 2}, {slot: math.MaxUint32}, {offset: 65}, {offset: 1 << 63}} {
			q.put(s.msgs)
			require.Error(t, s.completed(&iwarp.WC{Op: iwarp.OpRecv, Len: requestLen}), q)
		}
		(&request{}).put(s.msgs)
		require.Error(t, s.completed(&iwarp.WC{Op: iwarp.OpRecv, Len: requestLen - 1}))
		require.NoError(t, s.completed(&iwarp.WC{Op: iwarp.OpRecv, Len: requestLen}))
	})
}

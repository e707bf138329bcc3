package iwarp_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// A looked is a context that ends after Err has been called a number of times. The last of these calls still returns
// nil.
type looked struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int32
}

func (c *looked) Err() error {
	err := c.Context.Err()
	if c.left.Add(-1) == 0 {
		c.cancel()
		time.Sleep(10 * time.Millisecond) // for the consequences of the context's end
	}
	return err
}

// TestWaitEndsWithItsContext: whenever the context ends, between any of Wait's looks at it and the next step. Over TCP,
// where the goroutine that waits receives.
func TestWaitEndsWithItsContext(t *testing.T) {
	for name, wait := range map[string]func(*talk, context.Context) error{
		"CQ.Wait": func(k *talk, ctx context.Context) error {
			_, err := k.cq.Wait(ctx, make([]iwarp.WC, 1))
			return err
		},
		"QP.Recv": func(k *talk, ctx context.Context) error {
			_, err := k.qp.Recv(ctx, k.at(0, 8)[0])
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := &talk{side: newSide(t, nil)}
			k.mem, k.mr = k.register(talkMem, stag.LocalWrite, nil)
			var err error
			k.cq, err = k.rnic.CreateCQ(256)
			require.NoError(t, err)
			k.p, k.qp = responder(t, k.rnic, "tcp", &iwarp.QPConfig{PD: k.pd, SendCQ: k.cq, RecvCQ: k.cq})
			k.speaks()
			for after := int32(1); after <= 4; after++ {
				ctx := new(looked)
				ctx.Context, ctx.cancel = context.WithCancel(t.Context())
				ctx.left.Store(after)
				done := make(chan error, 1)
				go func() { done <- wait(k, ctx) }()
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond): // Wait has looked fewer times
				}
				ctx.cancel()
				select {
				case err := <-done:
					require.ErrorIs(t, err, context.Canceled)
				case <-time.After(wiretest.Patience):
					require.Fail(t, "the wait goes on", "the context has ended behind look %d", after)
				}
			}
			require.NoError(t, k.qp.Abort())
		})
	}
}

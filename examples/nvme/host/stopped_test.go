package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestHostThatWasStopped: it first reads the responses that have come. Only commands without one then are late.
func TestHostThatWasStopped(t *testing.T) {
	for _, answered := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			tg, o := newTarget(t), pipeOptions(t)
			o.Queues, o.Retries = 1, -1
			c := connect(t, tg, o)
			n := disk(t, c)
			a, err := c.current(context.Background())
			require.NoError(t, err)
			q := a.io[0]
			calls := make(chan *call, 1)
			tg.script(only(capsule.OpCompare, func(c *call) bool { calls <- c; return true }))
			done := make(chan error, 1)
			go func() {
				_, err := n.Compare(context.Background(), make([]byte, 4096), 0)
				done <- err
			}()
			synctest.Wait()
			q.mu.Lock()
			q.timer.Stop() // the process does not run, and then its timer fires before it has read anything
			q.mu.Unlock()
			time.Sleep(time.Hour)
			began := time.Now()
			q.expired()
			if answered {
				(<-calls).answer(0, capsule.Success)
				require.NoError(t, <-done)
				require.False(t, q.isDead())
				return
			}
			require.ErrorIs(t, <-done, ErrTimeout)
			require.Equal(t, readFirst, time.Since(began))
		})
	}
}

package cm

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestDialOfAPoolKnowsItsTime: package net divides the time among the addresses of a host, so an address that does not answer leaves
// time for the others. In the other stages the clock may be paused, and there is no deadline.
func TestDialOfAPoolKnowsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Second)
		var mu sync.Mutex
		ends := map[iwarp.SetupStage]time.Time{}
		p, _ := newTestPool(t, func(c *PoolConfig) {
			c.QP.SetupTrace = &iwarp.SetupTrace{Enter: func(ctx context.Context, s iwarp.SetupStage) error {
				mu.Lock()
				defer mu.Unlock()
				ends[s], _ = ctx.Deadline()
				return nil
			}}
		})
		begun := time.Now()
		p.mustGet(t, h).Release(false)
		mu.Lock()
		defer mu.Unlock()
		for s := iwarp.StageQP; s <= iwarp.StageReady; s++ {
			want := time.Time{}
			if s == iwarp.StageDial {
				want = begun.Add(setupTimeout)
			}
			require.Equal(t, want, ends[s], s)
		}
	})
}

// TestTimeOfADial: it is no longer than that of the context.
func TestTimeOfADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		hour := now.Add(time.Hour)
		for within, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 2 * time.Hour: time.Hour} {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			d := &dialTime{Context: ctx}
			until, ok := d.Deadline()
			require.True(t, ok)
			require.Equal(t, now.Add(within), until)
			d.until.Store(&hour)
			until, ok = d.Deadline()
			require.True(t, ok)
			require.Equal(t, now.Add(want), until)
			cancel()
		}
	})
}

package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestIdentify(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		id, err := c.Identify(context.Background())
		require.NoError(t, err)
		require.Equal(t, tg.id.SN, id.SN)
		id.SN = "the caller's"
		id, err = c.Identify(context.Background())
		require.NoError(t, err)
		require.Equal(t, tg.id.SN, id.SN)
		require.NoError(t, c.Close())
		_, err = c.Identify(context.Background())
		require.ErrorIs(t, err, ErrClosed)
	})
}

// A log page is read without its event being cleared.
func TestReadLog(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		c := connect(t, tg, pipeOptions(t))
		tg.mu.Lock()
		tg.log = pattern(4096, 7)
		tg.mu.Unlock()
		p := make([]byte, 1028)
		require.NoError(t, c.ReadLog(context.Background(), capsule.LogDiscovery, p))
		require.Equal(t, pattern(4096, 7)[:1028], p)
		logs := tg.commands(capsule.OpGetLogPage)
		m := capsule.ParseGetLogPage(&logs[len(logs)-1])
		require.True(t, m.RAE)
		for _, n := range []int{0, 3, adminTransfer + 4} {
			require.ErrorContains(t, c.ReadLog(context.Background(), capsule.LogSMART, make([]byte, n)), "multiple of 4")
		}
		tg.script(func(c *call) bool {
			if c.Opcode == capsule.OpGetLogPage {
				c.answer(0, capsule.StatusInvalidLogPage)
			}
			return c.Opcode == capsule.OpGetLogPage
		})
		require.ErrorIs(t, c.ReadLog(context.Background(), capsule.LogSMART, p), capsule.StatusError{Status: capsule.StatusInvalidLogPage})
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.ReadLog(context.Background(), capsule.LogSMART, p), ErrClosed)
	})
}

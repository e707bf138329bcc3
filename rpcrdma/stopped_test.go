package rpcrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// TestTimeInWhichThisProcessWasStopped does not count as time for which a client has let a Read, or replies, wait.
func TestTimeInWhichThisProcessWasStopped(t *testing.T) {
	const late = 10 * time.Minute
	for name, begin := range map[string]func(h *host) (c *client, release func()){
		"a Read": func(h *host) (*client, func()) {
			c := h.connect(linux)
			r, release := c.stuck(100000)
			call := c.header()
			call.Proc, call.Reads = wire.NoMsg, r.reads(0)
			c.send(call.Append(nil))
			return c, release
		},
		"replies": func(h *host) (*client, func()) {
			c := h.connect(linux, noReceives)
			for range c.conn.cfg.Credits {
				k := c.call()
				c.reply(k, accepted(k.rpc.XID), make([]byte, 4000))
			}
			return c, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, release := begin(newHost(t, "pipe", Config{}))
				began := time.Now()
				synctest.Wait()
				c.conn.mu.Lock()
				require.True(t, c.conn.armed)
				c.conn.expected = c.conn.expected.Add(-late) // as if the timer had been so late
				c.conn.mu.Unlock()
				<-c.conn.Done()
				require.ErrorIs(t, c.conn.Err(), errTimeout)
				release()
				require.InDelta(t, (patience + late).Seconds(), time.Since(began).Seconds(), 3)
			})
		})
	}
}

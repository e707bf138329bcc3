package rpcrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// TestTimeInWhichThisProcessWasStopped is none in which a client has let a Read wait.
func TestTimeInWhichThisProcessWasStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newHost(t, "pipe", Config{}).connect(linux)
		r, release := c.stuck(100000)
		call := c.header()
		call.Proc, call.Reads = wire.NoMsg, r.reads(0)
		began := time.Now()
		c.send(call.Append(nil))
		synctest.Wait()
		c.conn.mu.Lock()
		require.True(t, c.conn.armed)
		c.conn.expected = c.conn.expected.Add(-time.Hour) // as if the timer had been so late
		c.conn.mu.Unlock()
		<-c.conn.Done()
		require.ErrorIs(t, c.conn.Err(), errTimeout)
		release()
		require.InDelta(t, (patience + time.Hour).Seconds(), time.Since(began).Seconds(), 3)
	})
}

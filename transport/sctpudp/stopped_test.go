package sctpudp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stop lets time pass in which this process does not run, and then its timer fires before it has read anything.
func (x *victim) stop(d time.Duration) {
	x.a.mu.Lock()
	x.a.watch.Stop()
	x.a.mu.Unlock()
	time.Sleep(d)
	x.a.look()
}

// TestProcessThatWasStopped for longer than PeerTimeout does not give up a peer that has said something meanwhile, but asks it.
func TestProcessThatWasStopped(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		x.sack(1 << 20)
		require.True(t, c.Append([]byte("anything"), nil, true))
		require.NoError(t, c.Flush(true))
		timeout := x.a.e.cfg.PeerTimeout
		for range 3 {
			x.chunks(chunkHeartbeat)
			x.stop(2 * timeout)
			require.NoError(t, x.failure())
			require.NotEmpty(t, x.chunks(chunkHeartbeat))
			time.Sleep(timeout / 2)
			require.NoError(t, x.failure())
			x.sack(1 << 20)
			time.Sleep(timeout / 2)
			require.NoError(t, x.failure())
		}
		x.stop(2 * timeout)
		time.Sleep(timeout + timeout/2)
		require.Equal(t, errSilent, x.failure(), "a peer that says nothing then is gone")
	})
}

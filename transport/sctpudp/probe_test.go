package sctpudp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProbeIsACopy of the packet, which pion may use again.
func TestProbeIsACopy(t *testing.T) {
	var a association
	p := []byte{1, 2}
	a.keep(p, 7)
	p[0] = 3
	require.Equal(t, []byte{1, 2}, a.probe.packet)
}

// TestProbeIsSentAgainWhenThereIsRoom at once, and not when the timer runs out, which has backed off: the peer has dropped all of
// them until then. It is sent once, and only if the peer does not have it.
func TestProbeIsSentAgainWhenThereIsRoom(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		x.sack(0)
		require.True(t, c.Append([]byte("anything"), nil, true))
		require.NoError(t, c.Flush(true))
		for range 10 {
			x.sackBefore(1, 0)
			time.Sleep(time.Second)
		}
		probes := x.chunks(chunkData)
		require.Greater(t, len(probes), 1, "the peer is asked again")
		last := probes[len(probes)-1]

		x.sackBefore(1, uint32(x.a.packetSize)-1)
		require.Empty(t, x.chunks(chunkData), "there is no room for a packet")
		x.sackBefore(1, 1<<20)
		again := x.chunks(chunkData)
		require.Len(t, again, 1)
		require.Equal(t, last.tsn(), again[0].tsn())
		x.sackBefore(1, 0)
		x.sackBefore(1, 1<<20)
		require.Empty(t, x.chunks(chunkData))

		x.sackBefore(1, 0)
		require.Eventually(t, func() bool { return len(x.chunks(chunkData)) > 0 }, 10*time.Second, 10*time.Millisecond)
		x.sack(1 << 20)
		require.Empty(t, x.chunks(chunkData), "the peer has it")
	})
}

package transport

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeepAliveStaysWithinTheTimeout(t *testing.T) {
	for _, d := range []time.Duration{2 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 100 * time.Second, time.Hour} {
		k := keepAlive(d)
		require.True(t, k.Enable, "probes are sent for %v", d)
		require.GreaterOrEqual(t, k.Idle, time.Second, "the system counts whole seconds")
		require.GreaterOrEqual(t, k.Interval, time.Second, "the system counts whole seconds")
		total := k.Idle + time.Duration(k.Count)*k.Interval
		require.LessOrEqual(t, total, d, "the last probe is unanswered within %v", d)
		require.Greater(t, total, d*2/3, "the time of %v is used", d)
	}
	require.Equal(t, 2*time.Second, func() time.Duration {
		k := keepAlive(time.Millisecond)
		return k.Idle + time.Duration(k.Count)*k.Interval
	}(), "less than two seconds cannot be had")
	require.Equal(t, net.KeepAliveConfig{}, keepAlive(0), "zero takes the bound away")
}

func TestPeerTimeoutOfOtherConnections(t *testing.T) {
	a, b := Pipe(PipeOptions{})
	defer a.Close()
	defer b.Close()
	require.NoError(t, SetPeerTimeout(a, time.Second), "a pipe's peer cannot vanish")
}

//go:build linux && !purego

package transport

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAlarmRings(t *testing.T) {
	p, err := NewPoller()
	require.NoError(t, err)
	rang := make(chan time.Time, 1)
	ring := func() { rang <- time.Now() }
	for range 3 {
		before := time.Now()
		require.NoError(t, p.SetAlarm(2*time.Millisecond, ring))
		select {
		case at := <-rang:
			require.GreaterOrEqual(t, at.Sub(before), 2*time.Millisecond, "not before its time")
		case <-time.After(10 * time.Second):
			require.Fail(t, "the alarm does not ring")
		}
		n, err := unix.EpollWait(p.set.fd, make([]unix.EpollEvent, 1), 0)
		require.NoError(t, err)
		require.Zero(t, n, "its event is reported once, or the watcher would not rest")
	}
	require.NoError(t, p.SetAlarm(time.Hour, ring))
	require.NoError(t, p.SetAlarm(time.Millisecond, ring), "the last one counts")
	<-rang
	require.NoError(t, p.SetAlarm(time.Hour, ring))
	require.NoError(t, p.Close(), "an alarm that is set does not delay Close")
	require.ErrorIs(t, p.SetAlarm(time.Millisecond, ring), os.ErrClosed)
}

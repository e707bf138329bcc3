package peer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	u := Usage{3 * time.Second, 5}
	require.Equal(t, Usage{CPU: time.Second, Mallocs: 2}, u.Minus(Usage{2 * time.Second, 3}))
	require.Equal(t, Usage{CPU: 4 * time.Second, Mallocs: 6}, u.Plus(Usage{time.Second, 1}))
}

func TestUsageGoesOverTheWire(t *testing.T) {
	var b [UsageLen]byte
	u := Usage{CPU: 3 * time.Second, Mallocs: 1 << 40}
	u.Put(&b)
	require.Equal(t, u, UsageOf(&b))
}

func TestMeterAllocatesNothing(t *testing.T) {
	var m Meter
	require.Zero(t, testing.AllocsPerRun(10, func() { m.Read() }), "or it would measure itself")
}

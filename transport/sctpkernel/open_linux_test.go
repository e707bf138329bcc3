//go:build !386

package sctpkernel

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLastAttempt is never so long that its number of milliseconds would be another one of 32 bits, or would mean no end.
func TestLastAttempt(t *testing.T) {
	for timeout, want := range map[time.Duration]uint32{
		1:                             1,
		15 * time.Second:              1875,
		24 * time.Hour:                10_800_000,
		8 * math.MaxInt32 * 1e6:       math.MaxInt32,
		8 * (math.MaxInt32 + 1) * 1e6: math.MaxInt32,
		8 * (1<<32 + 1) * 1e6:         math.MaxInt32,
		math.MaxInt64:                 math.MaxInt32,
	} {
		require.Equal(t, want, lastAttempt(timeout), "%v", timeout)
	}
}

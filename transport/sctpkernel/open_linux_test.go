//go:build !386

package sctpkernel

import (
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

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

// TestStackStaysWhereItIs while the library has given its address to the kernel: neither calls nor a garbage collection, which gives
// back a stack that is mostly unused, move it.
func TestStackStaysWhereItIs(t *testing.T) {
	var before, called, collected uintptr
	require.NoError(t, roomy(func() error {
		var x byte
		before = uintptr(unsafe.Pointer(&x))
		deep(0)
		called = uintptr(unsafe.Pointer(&x))
		runtime.GC()
		collected = uintptr(unsafe.Pointer(&x))
		return nil
	}))
	require.Equal(t, before, called, "a call has moved the stack")
	require.Equal(t, before, collected, "a collection has moved the stack")
}

// deep uses more of the stack than the library.
//
//go:noinline
func deep(i int) byte {
	var b [16 << 10]byte
	b[len(b)-1-i] = 1
	return b[i]
}

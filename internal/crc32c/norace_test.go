//go:build !race

package crc32c

import (
	"hash/crc32"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The race detector would rightly report this test.
func TestCopyOfChangingMemory(t *testing.T) {
	words := make([]uint64, 4099/8+1)
	src := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4099)
	dst := make([]byte, len(src))
	var stop atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for v := uint64(1); !stop.Load(); v++ {
			for i := range words {
				atomic.StoreUint64(&words[i], v*0x9e3779b97f4a7c15)
			}
		}
	})
	t.Cleanup(writer.Wait)
	t.Cleanup(func() { stop.Store(true) })
	eachWay(t, func(t *testing.T) {
		for range 5000 {
			sum := Copy(0, dst, src)
			require.Equal(t, crc32.Checksum(dst, castagnoli), sum, "the CRC is that of what was copied")
		}
	})
}

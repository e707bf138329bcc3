package main

import (
	"context"
	"runtime"
	"time"
)

// heap is what is alive.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes by the second one
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapBack waits until the heap is back within a tenth, but not for longer than that, and returns what it is.
func heapBack(ctx context.Context, before uint64, longest time.Duration) uint64 {
	for until := time.Now().Add(longest); ; {
		now := heap()
		if back(before, now) || time.Now().After(until) || ctx.Err() != nil {
			return now
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// back tells whether a heap is within a tenth of what it was.
func back(before, after uint64) bool { return after <= before+before/10 }

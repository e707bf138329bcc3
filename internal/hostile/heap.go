package main

import (
	"context"
	"runtime"
	"time"
)

// recordSize is about what a record of an attack takes, of those that are kept for the operator.
const recordSize = 256

// heap is what is alive, but for the records of attacks: their number is bounded, and it may take long until it is reached.
func (v *victim) heap() uint64 {
	records := 0
	for _, n := range v.records {
		records += n()
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes by the second one
	runtime.ReadMemStats(&m)
	return m.HeapAlloc - recordSize*uint64(records)
}

// heapBack waits until the heap is back within a tenth, but not for longer than that, and returns what it is.
func (v *victim) heapBack(ctx context.Context, before uint64, longest time.Duration) uint64 {
	for until := time.Now().Add(longest); ; {
		now := v.heap()
		if back(before, now) || time.Now().After(until) || ctx.Err() != nil {
			return now
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// kept bounds what a process keeps of the buffers that its connections have used (package freelist): their number does not
// depend on how many peers there were, but on how many were at work at once, which an attack may well raise. Most of it are
// 33 buffers of 64 KiB for sending and four of 512 KiB for reading (package mpa).
const kept = 6 << 20

// back reports whether a heap is within a tenth of what it was, besides what is kept.
func back(before, after uint64) bool { return after <= before+before/10+kept }

//go:build amd64 && !purego

// Package pmem writes back the processor's cache to persistent memory.
package pmem

import "unsafe"

const line = 64

// lines calls f with each cache line of mem.
func lines(mem []byte, f func(p unsafe.Pointer)) {
	if len(mem) == 0 {
		return
	}
	base := unsafe.Pointer(unsafe.SliceData(mem))
	skip := int(uintptr(base) & (line - 1))
	for off := -skip; off < len(mem); off += line {
		f(unsafe.Add(base, max(off, 0)))
	}
}

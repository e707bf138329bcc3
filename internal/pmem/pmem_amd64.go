//go:build !purego

package pmem

import "unsafe"

func cpuid7() (ebx uint32)

func clwb(p unsafe.Pointer)
func clflushopt(p unsafe.Pointer)
func clflush(p unsafe.Pointer)
func sfence()

// writeBackLine executes the cheapest write-back instruction of the processor. All
// processors of this architecture have CLFLUSH.
var writeBackLine = choose(cpuid7())

func choose(ebx uint32) func(p unsafe.Pointer) {
	switch {
	case ebx&(1<<24) != 0:
		return clwb
	case ebx&(1<<23) != 0:
		return clflushopt
	}
	return clflush
}

// Supported reports whether WriteBack can be used.
func Supported() bool { return true }

// WriteBack starts to write back the cache lines of mem. They are durable after Fence.
func WriteBack(mem []byte) { lines(mem, writeBackLine) }

// Fence waits for the write-backs that WriteBack has started on this processor.
func Fence() { sfence() }

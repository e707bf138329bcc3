//go:build !purego

package pmem

import "unsafe"

func cpuid7() (ebx uint32)

func clwb(p unsafe.Pointer)
func clflushopt(p unsafe.Pointer)
func clflush(p unsafe.Pointer)
func sfence()

// writeBackLine is the cheapest instruction that the processor has. All processors of
// this architecture have CLFLUSH.
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

// Fence waits for what WriteBack has started on this processor.
func Fence() { sfence() }

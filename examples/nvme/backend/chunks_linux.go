//go:build linux && !race

package backend

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappedChunks is how many chunks are mapped at once, of a Memory that may have as many. The system gives what is written of them.
const mappedChunks = 64

// hugePage is the least length of a huge page, in octets, on the systems that have them for memory like this.
const hugePage = 2 << 20

// chunks is where a Memory has its chunks from: memory of the system, in huge pages where it has them, and not the heap of Go, whose
// pages are small. A command of 1 MiB touches 256 of those, each of which the processor has to look up. (The race detector
// watches the heap alone, so with it they come from there.)
type chunks struct {
	step int // how many are mapped at once

	mu     sync.Mutex
	spare  []*chunk // zeros
	mapped [][]byte
}

// newChunks returns those of m, and unmaps them when nothing uses m any more, unless Close has done so.
func newChunks(m *Memory) *chunks {
	c := &chunks{step: int(min(mappedChunks, int64(len(m.chunks)), m.most))}
	runtime.AddCleanup(m, (*chunks).unmap, c)
	return c
}

// get returns a chunk of zeros. nil: the system gives no more.
func (c *chunks) get() *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) == 0 && c.grow() != nil {
		return nil
	}
	last := len(c.spare) - 1
	one := c.spare[last]
	c.spare = c.spare[:last]
	return one
}

// grow maps more. mu is held.
func (c *chunks) grow() error {
	size, slack := c.step*memoryChunk, 0
	if size >= hugePage {
		slack = hugePage // as the first one begins at any page
	}
	b, err := unix.Mmap(-1, 0, size+slack, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a kernel without them has small pages
	c.mapped = append(c.mapped, b)
	first := min(slack, int(-uintptr(unsafe.Pointer(unsafe.SliceData(b)))%hugePage))
	for i := c.step - 1; i >= 0; i-- { // neighbours, which share a huge page, are used one after the other
		c.spare = append(c.spare, (*chunk)(b[first+i*memoryChunk:]))
	}
	return nil
}

// put gives a chunk back, and its memory to the system.
func (c *chunks) put(one *chunk) {
	if unix.Madvise(one[:], unix.MADV_DONTNEED) != nil { // it is locked in memory
		clear(one[:])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = append(c.spare, one)
}

// unmap gives all of them back to the system. None of them is in use, nor will be.
func (c *chunks) unmap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.mapped {
		_ = unix.Munmap(b)
	}
	c.mapped, c.spare = nil, nil
}

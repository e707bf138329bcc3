//go:build linux && !race

package backend

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappedChunks is how many chunks are mapped at once, if a Memory may have as many. The system allocates them when they are written.
const mappedChunks = 64

// hugePage is the least length of a huge page, in octets, on the systems that have them for memory like this.
const hugePage = 2 << 20

// chunks provides the chunks of a Memory: memory of the system, in huge pages if available, instead of the Go heap, whose pages are
// small. A command of 1 MiB touches 256 small pages, each of which the processor has to look up. (The race detector
// watches only the heap, so with it the chunks come from there.)
type chunks struct {
	step int // how many are mapped at once

	mu     sync.Mutex
	spare  []*chunk // zeros
	mapped [][]byte
}

// newChunks returns the chunks of m, and unmaps them when nothing uses m any more, unless Close has done so.
func newChunks(m *Memory) *chunks {
	c := &chunks{step: int(min(mappedChunks, int64(len(m.chunks)), m.most))}
	runtime.AddCleanup(m, (*chunks).unmap, c)
	return c
}

// get returns a chunk of zeros, nil if the system provides no more.
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

// grow maps more chunks. mu must be held.
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

// put takes back a chunk, and returns its memory to the system.
func (c *chunks) put(one *chunk) {
	if unix.Madvise(one[:], unix.MADV_DONTNEED) != nil { // it is locked in memory
		clear(one[:])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = append(c.spare, one)
}

// unmap returns all chunks to the system. None of them may be in use now or later.
func (c *chunks) unmap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.mapped {
		_ = unix.Munmap(b)
	}
	c.mapped, c.spare = nil, nil
}

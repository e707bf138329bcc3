package mpa

import (
	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/freelist"
)

// The sizes of read buffers: to park with while little data arrives, for example a block of 4 KiB
// with its headers and a few messages after it; to park with a part of any FPDU (at most
// 66,064 octets with its Markers); and to read much at a time.
const (
	smallBuffer  = 4<<10 + 768
	mediumBuffer = 72 << 10
	largeBuffer  = 512 << 10
)

// A bufferClass is one size of read buffer and the idle ones, shared by all connections.
type bufferClass = freelist.List[[]byte]

func newBufferClass(size, keep int) *bufferClass {
	return &bufferClass{Retain: keep, New: func() *[]byte {
		b := make([]byte, size)
		return &b
	}}
}

var small, medium, large = newBufferClass(smallBuffer, 16), newBufferClass(mediumBuffer, 8), newBufferClass(largeBuffer, 4)

// A readBuffer holds received octets that are not delivered yet, in memory that is
// borrowed only while there is something to hold or to read.
type readBuffer struct {
	class *bufferClass // nil: no memory
	box   *[]byte
	r, w  int // the octets held: (*box)[r:w]
}

// octets returns the octets held. They move with resize, free and shrink.
func (b *readBuffer) octets() []byte {
	if b.class == nil {
		return nil
	}
	return (*b.box)[b.r:b.w]
}

// resize moves the octets held to memory of class k, which must be large enough for them.
func (b *readBuffer) resize(k *bufferClass) {
	if b.class == k {
		return
	}
	box := k.Get()
	n := copy(*box, b.octets())
	b.release()
	*b = readBuffer{class: k, box: box, w: n}
}

// free returns the memory for more octets: at least half of the buffer, or all that the
// octets held leave free. Call filled with the number of octets that arrived.
func (b *readBuffer) free() []byte {
	mem := *b.box
	if b.r > 0 && len(mem)-b.w < len(mem)/2 {
		b.w = copy(mem, mem[b.r:b.w])
		b.r = 0
	}
	return mem[b.w:]
}

func (b *readBuffer) filled(n int) { b.w += n }

// full reports whether there is no room after the octets held, so that more may have come.
func (b *readBuffer) full() bool { return b.w == len(*b.box) }

// prepend puts the n octets of vec from octet at on in front of the octets held.
func (b *readBuffer) prepend(vec [][]byte, at, n int) {
	mem := *b.box
	b.w = n + copy(mem[n:], mem[b.r:b.w])
	b.r = 0
	for i, to := 0, 0; to < n; i++ {
		if at >= len(vec[i]) {
			at -= len(vec[i])
			continue
		}
		to += blockcopy.Copy(mem[to:n], vec[i][at:])
		at = 0
	}
}

// drop drops the first n octets.
func (b *readBuffer) drop(n int) {
	b.r += n
	if b.r == b.w {
		b.r, b.w = 0, 0
	}
}

// shrink leaves no more memory than the octets held need.
func (b *readBuffer) shrink() {
	switch n := b.w - b.r; {
	case n == 0:
		b.release()
	case n <= smallBuffer/2:
		b.resize(small)
	case n <= mediumBuffer:
		b.resize(medium)
	}
}

// release returns the memory, and drops the octets held.
func (b *readBuffer) release() {
	if b.class != nil {
		b.class.Put(b.box)
	}
	*b = readBuffer{}
}

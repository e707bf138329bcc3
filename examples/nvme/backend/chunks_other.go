//go:build !linux || race

package backend

// chunks is where a Memory has its chunks from: the heap.
type chunks struct{}

func newChunks(*Memory) *chunks { return new(chunks) }

// get returns a chunk of zeros.
func (*chunks) get() *chunk { return new(chunk) }

func (*chunks) put(*chunk) {}

func (*chunks) unmap() {}

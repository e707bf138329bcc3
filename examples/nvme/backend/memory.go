package backend

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// memoryChunk is how many octets are allocated at once.
	memoryChunk = 1 << 20
	// memoryStripe is how many octets are copied under one lock.
	memoryStripe = 64 << 10
	// memoryStripes is how many locks there are. The locks of a chunk are consecutive.
	memoryStripes = 256

	stripesOfChunk = memoryChunk / memoryStripe
)

// maxMemory bounds the table of chunks to 128 MiB, of which the system allocates what is used.
const maxMemory = 16 << 40

// MemoryConfig is the shape of a [Memory].
type MemoryConfig struct {
	Size      int64 // octets, up to 16 TiB; rounded down to the block size
	BlockSize int   // 0: 4096
	// Cap is the maximum number of octets that are allocated, rounded down to 1 MiB; 0: all. A
	// write that needs more fails with ErrNoSpace; blocks before the first one without room are
	// written.
	Cap      int64
	ReadOnly bool
	// Volatile makes the method Volatile return true, so that hosts send Flush.
	Volatile bool
}

// Memory is a Backend in memory. It is allocated in chunks of 1 MiB when it is written, and Trim
// frees chunks that are entirely within its range. On Linux it uses huge pages, if the system has
// them (/sys/kernel/mm/transparent_hugepage/enabled); two chunks share a huge page.
//
// A power cut, or the end of the process, destroys everything. Nevertheless Memory is not volatile
// unless MemoryConfig.Volatile is set, since no Flush could change that: it is for tests, and for
// data that need not persist.
type Memory struct {
	geometry
	volatile bool
	most     int64 // chunks that may be allocated
	have     atomic.Int64
	closed   atomic.Bool

	// A stripe's lock is held while octets of it are copied; that makes blocks atomic. All
	// locks of a chunk are held, in ascending order, while it is allocated or freed.
	locks  [memoryStripes]sync.RWMutex
	chunks []*chunk // nil: zeros
	from   *chunks
}

// A chunk is what is allocated at once.
type chunk [memoryChunk]byte

// NewMemory returns a Memory filled with zeros.
func NewMemory(c MemoryConfig) (*Memory, error) {
	if c.BlockSize == 0 {
		c.BlockSize = defaultBlock
	}
	if c.Size > maxMemory {
		return nil, fmt.Errorf("backend: %d octets of memory are more than 16 TiB", c.Size)
	}
	g, err := newGeometry(c.Size, c.BlockSize, c.ReadOnly)
	if err != nil {
		return nil, err
	}
	m := &Memory{geometry: g, volatile: c.Volatile}
	m.chunks = make([]*chunk, (g.size+memoryChunk-1)/memoryChunk)
	m.most = int64(len(m.chunks))
	if c.Cap != 0 {
		m.most = c.Cap / memoryChunk
	}
	if m.most <= 0 {
		return nil, fmt.Errorf("backend: a cap of %d octets is less than the 1 MiB that is allocated at once", c.Cap)
	}
	m.from = newChunks(m)
	return m, nil
}

// Volatile implements [Backend].
func (m *Memory) Volatile() bool { return m.volatile }

// Traits returns the traits for [Describe].
func (m *Memory) Traits() Traits { return Traits{Trims: true, Immediate: true, Granularity: m.block} }

// Allocated returns how many octets of memory are allocated now.
func (m *Memory) Allocated() int64 { return m.have.Load() * memoryChunk }

// ReadAt implements [Backend].
func (m *Memory) ReadAt(ctx context.Context, p []byte, off int64) error {
	if err := m.begin(ctx, OpRead, off, int64(len(p)), false); err != nil {
		return err
	}
	for len(p) > 0 {
		n := min(int64(len(p)), memoryStripe-off%memoryStripe)
		m.readStripe(p[:n], off)
		p, off = p[n:], off+n
	}
	return nil
}

func (m *Memory) readStripe(p []byte, off int64) {
	l := m.lockOf(off)
	l.RLock()
	defer l.RUnlock()
	if c := m.chunks[off/memoryChunk]; c != nil {
		copy(p, c[off%memoryChunk:])
		return
	}
	clear(p)
}

// WriteAt implements [Backend].
func (m *Memory) WriteAt(ctx context.Context, p []byte, off int64, _ bool) error {
	whole, at := int64(len(p)), off
	if err := m.begin(ctx, OpWrite, off, whole, true); err != nil {
		return err
	}
	for len(p) > 0 {
		n := min(int64(len(p)), memoryStripe-off%memoryStripe)
		there, err := m.writeStripe(ctx, p[:n], off)
		if err != nil {
			return &Error{Op: OpWrite, Off: at, Len: whole, Err: err}
		}
		if there {
			p, off = p[n:], off+n
			continue
		}
		if kind := m.allocate(off / memoryChunk); kind != nil {
			return &Error{Kind: kind, Op: OpWrite, Off: at, Len: whole}
		}
	}
	return nil
}

// writeStripe returns false if there is no chunk to write to. It checks ctx under the lock, so that no other operation can
// intervene: see volume.goOn.
func (m *Memory) writeStripe(ctx context.Context, p []byte, off int64) (there bool, err error) {
	l := m.lockOf(off)
	l.Lock()
	defer l.Unlock()
	c := m.chunks[off/memoryChunk]
	if c == nil {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	copy(c[off%memoryChunk:], p)
	return true, nil
}

// WriteZeroes implements [Backend]. It does not allocate missing chunks.
func (m *Memory) WriteZeroes(ctx context.Context, off, n int64, unmap, _ bool) error {
	return m.zero(ctx, OpWriteZeroes, off, n, unmap)
}

// Trim implements [Backend].
func (m *Memory) Trim(ctx context.Context, off, n int64) error {
	return m.zero(ctx, OpTrim, off, n, true)
}

// zero makes zeros. If free is set, it frees whole chunks.
func (m *Memory) zero(ctx context.Context, op Op, off, n int64, free bool) error {
	if err := m.begin(ctx, op, off, n, true); err != nil {
		return err
	}
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return &Error{Op: op, Off: off, Len: n, Err: err}
		}
		part := min(n, memoryChunk-off%memoryChunk)
		whole := off%memoryChunk == 0 && (part == memoryChunk || off+part == m.size)
		var err error
		if free && whole {
			err = m.free(ctx, off/memoryChunk)
		} else {
			err = m.zeroChunk(ctx, off, part)
		}
		if err != nil {
			return &Error{Op: op, Off: off, Len: n, Err: err}
		}
		off, n = off+part, n-part
	}
	return nil
}

// zeroChunk makes zeros within a chunk, stripe by stripe.
func (m *Memory) zeroChunk(ctx context.Context, off, n int64) error {
	for n > 0 {
		part := min(n, memoryStripe-off%memoryStripe)
		if _, err := m.writeStripe(ctx, zeros[:part], off); err != nil { // a missing chunk is zeros
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

// Flush implements [Backend]: there is nothing to do.
func (m *Memory) Flush(ctx context.Context) error { return m.begin(ctx, OpFlush, 0, 0, false) }

// Close implements [Backend]. It frees the memory. It does not wait for running operations: they
// complete as if they had preceded Close, or fail with ErrClosed, and the octets that they wrote are lost.
func (m *Memory) Close() error {
	if m.closed.Swap(true) {
		return &Error{Kind: ErrClosed, Op: OpClose}
	}
	for i := range m.chunks {
		_ = m.free(context.Background(), int64(i))
	}
	m.from.unmap()
	return nil
}

func (m *Memory) begin(ctx context.Context, op Op, off, n int64, changes bool) error {
	if m.closed.Load() {
		return &Error{Kind: ErrClosed, Op: op, Off: off, Len: n}
	}
	if err := m.check(op, off, n, changes); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &Error{Op: op, Off: off, Len: n, Err: err}
	}
	return nil
}

func (m *Memory) lockOf(off int64) *sync.RWMutex {
	return &m.locks[off/memoryStripe%memoryStripes]
}

// allocate allocates a missing chunk. It returns ErrNoSpace if no more may be allocated, or the system provides none, and ErrClosed if
// Close may have passed the chunk already: no chunk may remain in the memory that Close unmaps.
func (m *Memory) allocate(i int64) error {
	m.lockChunk(i)
	defer m.unlockChunk(i)
	if m.chunks[i] != nil {
		return nil
	}
	if m.closed.Load() {
		return ErrClosed
	}
	if m.have.Add(1) <= m.most {
		if m.chunks[i] = m.from.get(); m.chunks[i] != nil {
			return nil
		}
	}
	m.have.Add(-1)
	return ErrNoSpace
}

// free frees a chunk, which then reads as zeros.
func (m *Memory) free(ctx context.Context, i int64) error {
	if !m.has(i) { // most chunks of a large range are missing
		return nil
	}
	m.lockChunk(i)
	defer m.unlockChunk(i)
	if err := ctx.Err(); err != nil {
		return err
	}
	if one := m.chunks[i]; one != nil {
		m.chunks[i] = nil
		m.have.Add(-1)
		m.from.put(one)
	}
	return nil
}

func (m *Memory) has(i int64) bool {
	l := m.lockOf(i * memoryChunk)
	l.RLock()
	defer l.RUnlock()
	return m.chunks[i] != nil
}

func (m *Memory) lockChunk(i int64) {
	first := i * stripesOfChunk % memoryStripes
	for k := range int64(stripesOfChunk) {
		m.locks[first+k].Lock()
	}
}

func (m *Memory) unlockChunk(i int64) {
	first := i * stripesOfChunk % memoryStripes
	for k := range int64(stripesOfChunk) {
		m.locks[first+k].Unlock()
	}
}

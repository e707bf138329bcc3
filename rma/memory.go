package rma

import (
	"io"
	"sync"
)

// Memory is an iwarp.Buffer that holds a region's octets in memory. Each operation of a client on it is
// atomic, and so are View and Update: none sees a part of another's change.
type Memory struct {
	mu sync.RWMutex
	b  []byte
}

// NewMemory returns the octets of b as Memory. From then on b belongs to the Memory: use View and Update.
func NewMemory(b []byte) *Memory { return &Memory{b: b} }

// View calls f with the octets. Nothing changes them until f returns. f must not change or keep them, nor
// call methods of the Memory.
func (m *Memory) View(f func(b []byte)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.b)
}

// Update calls f with the octets, which f may change. f must not keep them, nor call methods of the
// Memory.
func (m *Memory) Update(f func(b []byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.b)
}

// Size returns the number of octets.
func (m *Memory) Size() int64 { return int64(len(m.b)) }

// ReadAt copies octets from offset off to p. The error is io.EOF if fewer than len(p) follow off.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if off < 0 || off > int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt copies the octets of p to offset off. The error is io.ErrShortWrite if they do not all fit.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off < 0 || off > int64(len(m.b)) {
		return 0, io.ErrShortWrite
	}
	n := copy(m.b[off:], p)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

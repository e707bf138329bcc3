package host

import (
	"errors"
	"sync"
)

// A window is the memory of one command as its region shows it to the target. The region is not
// given the memory of the caller itself, but this, for two reasons. The caller can have its memory
// back at any time, without the end of the connection: what the target moves then it moves from or
// to somewhere else. And the octets that the target has moved are known exactly.
//
// The library calls ReadAt and WriteAt while the region is valid (iwarp.Buffer).
type window struct {
	mu    sync.Mutex
	mem   []byte // nil: the owner has it back
	size  int
	moved coverage
	drop  bool // octets that are written are dropped
}

var errDetached = errors.New("nvme: the command is over")

// attach begins with a command.
func (w *window) attach(mem []byte) {
	w.mu.Lock()
	w.mem, w.size, w.drop = mem, len(mem), false
	w.moved.clear()
	w.mu.Unlock()
}

// detach ends the access to the memory, and tells whether all of it was moved.
func (w *window) detach() (whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mem, w.drop = nil, false
	return w.moved.whole(w.size)
}

// abandon gives the memory back to the caller, while the command goes on. What the target reads is
// the same as before, since it may be written to the namespace.
func (w *window) abandon(toTarget bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if toTarget {
		w.mem = append([]byte(nil), w.mem...)
		return
	}
	w.mem, w.drop = nil, true
}

// Size is the length of the region.
func (w *window) Size() int64 { return int64(w.size) }

// ReadAt is for the target's RDMA Reads.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mem == nil {
		return 0, errDetached
	}
	n := copy(p, w.mem[off:])
	return n, w.moved.add(int(off), n)
}

// WriteAt is for the target's RDMA Writes.
func (w *window) WriteAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	switch {
	case w.drop:
	case w.mem == nil:
		return 0, errDetached
	default:
		n = copy(w.mem[off:], p)
	}
	return n, w.moved.add(int(off), n)
}

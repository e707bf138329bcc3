package host

import (
	"cmp"
	"errors"
	"sync"
)

// A window is the memory of one command as its region shows it to the target. The region is not
// given the memory of the caller itself, but this, for two reasons. The caller can have its memory
// back at any time, without the end of the connection: what the target moves then it moves from or
// to somewhere else. And the octets that the target has moved are known exactly.
//
// It is a [stag.MemoryBuffer]: the library copies to and from the memory between Acquire and Release.
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

// Acquire returns the memory, and holds the mutex until Release ([stag.MemoryBuffer]). nil: octets that come are dropped.
func (w *window) Acquire(off int64, n int, _ bool) ([]byte, error) {
	w.mu.Lock()
	mem, err := w.part(int(off), n)
	if mem == nil {
		w.mu.Unlock()
	}
	return mem, err
}

// Release ends what Acquire has begun.
func (w *window) Release(int64, int, bool) { w.mu.Unlock() }

// part is n octets, which count as moved. The mutex is held.
func (w *window) part(off, n int) ([]byte, error) {
	switch {
	case w.drop:
		return nil, nil
	case w.mem == nil:
		return nil, errDetached
	}
	if err := w.moved.add(off, n); err != nil {
		return nil, err
	}
	return w.mem[off:][:n], nil
}

// ReadAt is that of [stag.Buffer].
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	mem, err := w.Acquire(off, len(p), false)
	if mem == nil {
		return 0, cmp.Or(err, errDetached)
	}
	defer w.mu.Unlock()
	return copy(p, mem), nil
}

// WriteAt is that of [stag.Buffer].
func (w *window) WriteAt(p []byte, off int64) (int, error) {
	mem, err := w.Acquire(off, len(p), true)
	switch {
	case err != nil:
		return 0, err
	case mem == nil:
		return len(p), nil
	}
	defer w.mu.Unlock()
	return copy(mem, p), nil
}

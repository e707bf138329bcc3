package host

import (
	"cmp"
	"errors"
	"sync"
)

// A window is the memory of one command as its region presents it to the target. The region refers
// to the window, not to the caller's memory itself, for two reasons. The caller can get its memory
// back at any time without ending the connection: the target then moves octets from or to another
// place. And it is known exactly which octets the target has moved.
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

// attach begins a command with memory mem.
func (w *window) attach(mem []byte) {
	w.mu.Lock()
	w.mem, w.size, w.drop = mem, len(mem), false
	w.moved.clear()
	w.mu.Unlock()
}

// detach ends the access to the memory, and reports whether all of it was moved.
func (w *window) detach() (whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mem, w.drop = nil, false
	return w.moved.whole(w.size)
}

// abandon gives the memory back to the caller, while the command continues. The target still reads
// the same octets as before, since it may write them to the namespace.
func (w *window) abandon(toTarget bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if toTarget {
		w.mem = append([]byte(nil), w.mem...)
		return
	}
	w.mem, w.drop = nil, true
}

// Size returns the length of the region.
func (w *window) Size() int64 { return int64(w.size) }

// Acquire returns the memory, and holds the mutex until Release ([stag.MemoryBuffer]). If it returns nil, arriving octets are dropped.
func (w *window) Acquire(off int64, n int, _ bool) ([]byte, error) {
	w.mu.Lock()
	mem, err := w.part(int(off), n)
	if mem == nil {
		w.mu.Unlock()
	}
	return mem, err
}

// Release ends an access that Acquire has begun.
func (w *window) Release(int64, int, bool) { w.mu.Unlock() }

// part returns n octets, which count as moved. The mutex must be held.
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

// ReadAt implements [stag.Buffer].
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	mem, err := w.Acquire(off, len(p), false)
	if mem == nil {
		return 0, cmp.Or(err, errDetached)
	}
	defer w.mu.Unlock()
	return copy(p, mem), nil
}

// WriteAt implements [stag.Buffer].
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

package stag

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/raceorder"
)

// AtomicLen is the number of octets that an atomic operation accesses.
const AtomicLen = 8

// Aligned reports whether the octet at off, which is within the region, may be the
// first of an atomic operation (RFC 7306 section 5.1). What counts is not its tagged
// offset but its address in memory, or its position in a [Buffer].
func (r *Region) Aligned(off uint64) bool {
	if part, ok := r.buf.(section); ok {
		off += uint64(part.off)
	}
	if r.buf != nil {
		return off%AtomicLen == 0
	}
	return uintptr(unsafe.Pointer(&r.mem[off]))%AtomicLen == 0
}

// StoresAtomically reports whether eight octets that are Aligned are stored at once, even for readers
// that bypass the table: they are memory, or in an [AtomicBuffer] that says so.
func (r *Region) StoresAtomically() bool {
	buf := r.buf
	if part, ok := buf.(section); ok {
		buf = part.Buffer
	}
	if buf == nil {
		return true
	}
	a, ok := buf.(AtomicBuffer)
	return ok && a.Atomic()
}

// Update replaces the 64-bit value v at off by change(v), and returns v. The caller
// has a pin, and off is Aligned. No other Update of the same octets comes in between,
// whichever regions of the table name them.
//
// The value has the byte order of the host (RFC 7306 section 5.1). In memory it is
// changed by sync/atomic, so code of this process that uses sync/atomic on it is synchronised.
// The Updates of all Buffers of the table are executed one at a time, because two Buffers may be
// the same file; reads and writes that bypass the table may come in between. change may be
// called several times; if it returns v nothing is written. The error is [ErrBounds], with nothing
// changed, or that of the Buffer or of Options.Dirty, after which the octets are indeterminate.
func (t *Table) Update(r *Region, off uint64, change func(v uint64) uint64) (v uint64, err error) {
	if !r.contains(off, AtomicLen) {
		return 0, ErrBounds
	}
	if r.buf != nil {
		return t.updateBuffer(r, off, change)
	}
	began := r.Began()
	v, changed := updateMemory((*uint64)(unsafe.Pointer(&r.mem[off])), change)
	if changed {
		err = r.wrote(began, off, AtomicLen, nil)
	}
	return v, err
}

// Store makes v the 64-bit value at off, in the byte order of the host, as one step that is
// never concurrent with an Update. The caller has a pin, and off is Aligned. Unlike Update it always
// writes: octets that a medium has lost may look unchanged. The error is like that of Update.
func (t *Table) Store(r *Region, off, v uint64) error {
	if !r.contains(off, AtomicLen) {
		return ErrBounds
	}
	if r.buf != nil {
		t.buffers.mu.Lock()
		defer t.buffers.mu.Unlock()
		return t.putBuffer(r, off, v)
	}
	began := r.Began()
	storeMemory((*uint64)(unsafe.Pointer(&r.mem[off])), v)
	return r.wrote(began, off, AtomicLen, nil)
}

func storeMemory(p *uint64, v uint64) {
	raceorder.Lock()
	defer raceorder.Unlock()
	atomic.StoreUint64(p, v)
}

// updateMemory implements Update for memory. Reads and Writes of peers may access the same octets.
func updateMemory(p *uint64, change func(v uint64) uint64) (v uint64, changed bool) {
	raceorder.Lock()
	defer raceorder.Unlock()
	for {
		v = atomic.LoadUint64(p)
		fresh := change(v)
		if fresh == v {
			return v, false
		}
		if atomic.CompareAndSwapUint64(p, v, fresh) {
			return v, true
		}
	}
}

// An updates serialises the Updates of Buffers.
type updates struct {
	mu     lockorder.Mutex[lockorder.Updates]
	octets [AtomicLen]byte // of the Update that holds mu
}

func (t *Table) updateBuffer(r *Region, off uint64, change func(v uint64) uint64) (v uint64, err error) {
	t.buffers.mu.Lock()
	defer t.buffers.mu.Unlock()
	octets := t.buffers.octets[:]
	if err := r.ReadInto(octets, off); err != nil {
		return 0, err
	}
	v = binary.NativeEndian.Uint64(octets)
	fresh := change(v)
	if fresh == v {
		return v, nil
	}
	return v, t.putBuffer(r, off, fresh)
}

// putBuffer writes v by WriteAt, even to a [MemoryBuffer], because WriteAt is what an [AtomicBuffer] declares atomic.
// Preconditions: t.buffers.mu is held.
func (t *Table) putBuffer(r *Region, off, v uint64) error {
	octets := t.buffers.octets[:]
	binary.NativeEndian.PutUint64(octets, v)
	return r.placeBy(r.writeAt, off, octets)
}

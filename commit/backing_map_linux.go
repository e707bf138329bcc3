package commit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/pmem"
)

// A Mapping is a file mapped into memory. Register it as the buffer and as the Durable of
// one region. If another program truncates the file, reads, writes and Flush return an
// error; the process does not crash.
type Mapping struct {
	*group
	*opened

	mu  sync.RWMutex // held for writing by Close
	mem []byte
}

// MapFile maps a file of at least size octets; 0 means its current length. It creates or
// extends the file like [OpenFile]. A single run of written octets is made durable by msync,
// several runs by fdatasync, which writes the journal and the disk's cache once for all of
// them.
func MapFile(path string, size int64) (*Mapping, error) {
	return mapShared(host{}, path, size)
}

func mapShared(sys system, path string, size int64) (*Mapping, error) {
	m, err := mapFile(sys, path, size, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	m.group = newGroup(m.size, false, m.sync)
	return m, nil
}

// MapPMem maps a file of at least size octets on persistent memory (DAX). It is made
// durable by writing back cache lines: no system call, no disk. MapPMem fails with an error
// that matches errors.ErrUnsupported if the file system does not grant MAP_SYNC, without which
// that is not sufficient, or if the processor cannot write back its cache.
func MapPMem(path string, size int64) (*Mapping, error) {
	if !pmem.Supported() {
		return nil, fmt.Errorf("commit: %s: no instruction writes back cache lines here: %w", path, errors.ErrUnsupported)
	}
	return mapPMem(host{}, path, size)
}

func mapPMem(sys system, path string, size int64) (*Mapping, error) {
	m, err := mapFile(sys, path, size, unix.MAP_SHARED_VALIDATE|unix.MAP_SYNC)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("commit: %s is not on persistent memory (MAP_SYNC was refused): %w: %w", path, errors.ErrUnsupported, err)
	}
	if err != nil {
		return nil, err
	}
	m.group = newGroup(m.size, false, m.writeBack)
	return m, nil
}

func mapFile(sys system, path string, size int64, flags int) (*Mapping, error) {
	o, err := open(sys, path, size)
	if err != nil {
		return nil, err
	}
	if o.size != int64(int(o.size)) {
		_ = o.close()
		return nil, fmt.Errorf("commit: %s: %d octets cannot be mapped", path, o.size)
	}
	m := &Mapping{opened: o}
	if m.mem, err = sys.mmap(o.f, int(o.size), flags); err != nil {
		_ = o.close()
		return nil, fmt.Errorf("commit: mapping %s: %w", path, err)
	}
	return m, nil
}

// Size returns the size of the registered region in octets.
func (m *Mapping) Size() int64 { return m.size }

// ReadAt copies octets out of the file. Eight aligned ones are loaded at once. Beyond Size the error is io.EOF.
func (m *Mapping) ReadAt(p []byte, off int64) (int, error) {
	return readWithin(m.size, p, off, func(p []byte, off int64) (int, error) {
		return m.access(len(p), off, func(mem []byte) {
			if isWord(off, len(p)) {
				binary.NativeEndian.PutUint64(p, atomic.LoadUint64((*uint64)(unsafe.Pointer(&mem[0]))))
				return
			}
			copy(p, mem)
		})
	})
}

// WriteAt copies octets into the file, and records that they must be synced. Eight
// aligned ones are stored at once: a load sees all of them or none.
func (m *Mapping) WriteAt(p []byte, off int64) (n int, err error) {
	began := m.began()
	n, err = m.access(len(p), off, func(mem []byte) {
		if isWord(off, len(p)) {
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&mem[0])), binary.NativeEndian.Uint64(p))
			return
		}
		copy(mem, p)
	})
	m.wrote(began, off, int64(len(p)), err)
	return n, err
}

// Atomic implements [stag.AtomicBuffer].
func (m *Mapping) Atomic() bool { return true }

// access calls f with the n octets at off. If they no longer exist, the fault becomes an error.
func (m *Mapping) access(n int, off int64, f func(mem []byte)) (_ int, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.mem == nil {
		return 0, os.ErrClosed
	}
	if off < 0 || off > m.size || int64(n) > m.size-off {
		return 0, io.ErrUnexpectedEOF
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = m.faulted(fault)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	f(m.mem[off : off+int64(n)])
	return n, nil
}

// faulted returns a fault in the mapping as an error. It panics again with any other fault.
func (m *Mapping) faulted(fault any) error {
	at, ok := fault.(interface{ Addr() uintptr })
	base := uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))
	if !ok || at.Addr() < base || at.Addr()-base >= uintptr(m.size) {
		panic(fault)
	}
	return fmt.Errorf("commit: %s: octet %d of the mapping is gone: %w", m.f.Name(), at.Addr()-base, syscall.EIO)
}

func (m *Mapping) sync(ranges []Range) error {
	var err error
	if len(ranges) == 1 {
		err = m.msync(ranges[0])
	} else {
		err = datasync(m.sys, m.f)
	}
	if err != nil {
		return err
	}
	return m.uncut()
}

func (m *Mapping) msync(r Range) error {
	page := int64(os.Getpagesize())
	begin := r.Off &^ (page - 1)
	if err := m.sys.msync(m.mem[begin:r.end()]); err != nil {
		return asLoss(err)
	}
	return writable(m.sys, m.f)
}

// writeBack writes back the cache lines of ranges.
func (m *Mapping) writeBack(ranges []Range) error {
	for _, r := range ranges {
		if _, err := m.access(int(r.Len), r.Off, m.sys.writeBack); err != nil {
			return err
		}
	}
	m.sys.fence()
	return m.uncut()
}

// Close unmaps and closes the file, without a sync. Close the regions that use it first.
// Close may be called again.
func (m *Mapping) Close() error {
	m.group.close()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil {
		return nil
	}
	err := m.sys.munmap(m.mem)
	m.mem = nil
	return errors.Join(err, m.opened.close())
}

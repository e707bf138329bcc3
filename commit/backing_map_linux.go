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

// A Mapping is a file in memory. Register it as the buffer and as the Durable of one
// region. A file that another program makes shorter is an error, in its reader or writer
// and in Flush, and no crash.
type Mapping struct {
	*group
	f    *os.File
	size int64

	mu  sync.RWMutex // written: Close
	mem []byte
}

// MapFile maps a file of at least size octets, 0: as long as it is; it is made or grown
// like that of [OpenFile]. It is made durable by msync where one run of octets was written,
// and by fdatasync, which is one write of the journal and of the disk's cache for all, where there are
// more.
func MapFile(path string, size int64) (*Mapping, error) {
	m, err := mapFile(path, size, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	m.group = newGroup(m.size, false, m.sync)
	return m, nil
}

// MapPMem maps a file on persistent memory (DAX) of at least size octets. It is made
// durable by writing back cache lines: no system call, no disk. It fails with an error
// that matches errors.ErrUnsupported where the file system does not grant MAP_SYNC, without which
// that would not be enough, and where the processor cannot write back its cache.
func MapPMem(path string, size int64) (*Mapping, error) {
	if !pmem.Supported() {
		return nil, fmt.Errorf("commit: %s: no instruction writes back cache lines here: %w", path, errors.ErrUnsupported)
	}
	m, err := mapFile(path, size, unix.MAP_SHARED_VALIDATE|unix.MAP_SYNC)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("commit: %s is not on persistent memory (MAP_SYNC was refused): %w: %w", path, errors.ErrUnsupported, err)
	}
	if err != nil {
		return nil, err
	}
	m.group = newGroup(m.size, false, m.writeBack)
	m.cheap = cheapWriteBack
	return m, nil
}

// cheapWriteBack is 64 cache lines.
const cheapWriteBack = 4096

func mapFile(path string, size int64, flags int) (*Mapping, error) {
	f, size, err := open(path, size)
	if err != nil {
		return nil, err
	}
	if size != int64(int(size)) {
		_ = f.Close()
		return nil, fmt.Errorf("commit: %s: %d octets cannot be mapped", path, size)
	}
	m := &Mapping{f: f, size: size}
	err = withFD(f, func(fd int) (err error) {
		m.mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, flags)
		return err
	})
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("commit: mapping %s: %w", path, err)
	}
	return m, nil
}

// Size is that of the registered region, in octets.
func (m *Mapping) Size() int64 { return m.size }

// ReadAt copies octets out of the file.
func (m *Mapping) ReadAt(p []byte, off int64) (n int, err error) {
	return m.access(len(p), off, func(mem []byte) { copy(p, mem) })
}

// WriteAt copies octets into the file, and remembers that they are to be synced. Eight
// aligned ones are stored at once: whoever loads them sees all of them or none.
func (m *Mapping) WriteAt(p []byte, off int64) (n int, err error) {
	began := m.began()
	n, err = m.access(len(p), off, func(mem []byte) {
		if len(p) == 8 && off%8 == 0 {
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&mem[0])), binary.NativeEndian.Uint64(p))
			return
		}
		copy(mem, p)
	})
	m.wrote(began, off, len(p), err)
	return n, err
}

// access calls f with n octets at off. They may be gone: a fault is an error.
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

// faulted makes an error of a fault in the mapping, and of nothing else.
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
		err = datasync(m.f)
	}
	if err != nil {
		return err
	}
	return m.whole()
}

func (m *Mapping) msync(r Range) error {
	page := int64(os.Getpagesize())
	begin := r.Off &^ (page - 1)
	if err := again(func() error { return unix.Msync(m.mem[begin:r.Off+r.Len], unix.MS_SYNC) }); err != nil {
		return err
	}
	return writable(m.f)
}

// writeBack writes back the cache lines of ranges.
func (m *Mapping) writeBack(ranges []Range) error {
	for _, r := range ranges {
		if _, err := m.access(int(r.Len), r.Off, pmem.WriteBack); err != nil {
			return err
		}
	}
	pmem.Fence()
	return m.whole()
}

// whole fails if the file was made shorter: what was written behind its end is lost, and
// no sync has missed it.
func (m *Mapping) whole() error {
	st, err := m.f.Stat()
	if err != nil {
		return err
	}
	if st.Mode().IsRegular() && st.Size() < m.size {
		return fmt.Errorf("commit: %s was cut to %d of %d octets: %w", m.f.Name(), st.Size(), m.size, syscall.EIO)
	}
	return nil
}

// Close unmaps and closes the file, without a sync, when the regions that it is
// registered as are closed.
func (m *Mapping) Close() error {
	m.close()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil {
		return nil
	}
	err := unix.Munmap(m.mem)
	m.mem = nil
	return errors.Join(err, m.f.Close())
}

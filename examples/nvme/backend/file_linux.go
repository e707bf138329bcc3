package backend

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openFlags returns the flags for os.OpenFile.
func openFlags(c FileConfig) (int, error) {
	flags := os.O_RDWR
	if c.ReadOnly {
		flags = os.O_RDONLY
	}
	if c.Sync {
		flags |= unix.O_DSYNC
	}
	if c.Direct {
		flags |= unix.O_DIRECT
	}
	return flags, nil
}

// fileMedium returns f as a medium. Preconditions: f needs no sync.
func fileMedium(f *os.File, c FileConfig, g geometry) (medium, Traits, error) {
	m, err := newLinuxFile(f, c, g)
	if err != nil {
		return nil, Traits{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		return nil, Traits{}, err
	}
	t := Traits{Granularity: granularity(int64(st.Blksize), g)} //nolint:unconvert // arm64 has an int32
	if !c.ReadOnly {
		// Beyond the end of the file, the trial changes nothing.
		beyond := (st.Size + maxBlock - 1) &^ (maxBlock - 1)
		t.Trims = m.punch(beyond, maxBlock) == nil
	}
	return m, t, nil
}

// granularity returns size if it is usable, or else the block size.
func granularity(size int64, g geometry) int {
	if size < int64(g.block) || size > 1<<20 || size%int64(g.block) != 0 {
		return g.block
	}
	return int(size)
}

// A linuxFile is a file or a block device.
type linuxFile struct {
	f  *os.File
	fd int // of f; the volume calls nothing after close

	// dsync is the same file opened again, for writes with RWF_DSYNC: the system reports a page
	// that it could not write once per open file, and fdatasync of f must not miss that report.
	// It may be nil.
	dsync *os.File
	iov   [1][]byte // of writeDurably

	always bool // O_DSYNC: each write is a sync
	direct bool // O_DIRECT: buffers must be aligned

	// serial is held for a change that is also a sync: if two were concurrent, one could get the error of the other.
	serial sync.Mutex
	frozen func(fd int) (bool, error) // readOnly
}

func newLinuxFile(f *os.File, c FileConfig, g geometry) (*linuxFile, error) {
	m := &linuxFile{f: f, fd: int(f.Fd()), always: c.Sync, direct: c.Direct, frozen: readOnly}
	// The next read is from the disk, not from a page that could not be written.
	if err := unix.Fadvise(m.fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		return nil, err
	}
	if c.Direct {
		first := make([]byte, g.block)
		if err := m.readAt(first, 0); errors.Is(err, unix.EINVAL) {
			return nil, fmt.Errorf("direct I/O with blocks of %d octets: %w (larger blocks may do)", g.block, err)
		} else if err != nil {
			return nil, err
		}
	}
	if !c.ReadOnly && !c.Sync {
		flags, err := openFlags(c)
		if err != nil {
			return nil, err
		}
		// Without dsync, FUA is a write and a sync.
		m.dsync, _ = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", m.fd), flags, 0)
	}
	return m, nil
}

func (m *linuxFile) readAt(p []byte, off int64) error {
	if !m.direct || isAligned(p) {
		return readFull(m.f, p, off)
	}
	return eachAligned(p, off, func(buf, p []byte, off int64) error {
		if err := readFull(m.f, buf, off); err != nil {
			return err
		}
		copy(p, buf)
		return nil
	})
}

func (m *linuxFile) writeAt(p []byte, off int64) error {
	if !m.direct || isAligned(p) {
		return m.pwrite(p, off)
	}
	return eachAligned(p, off, func(buf, p []byte, off int64) error {
		copy(buf, p)
		return m.pwrite(buf, off)
	})
}

func (m *linuxFile) pwrite(p []byte, off int64) error {
	if !m.always {
		_, err := m.f.WriteAt(p, off)
		return err
	}
	m.serial.Lock()
	defer m.serial.Unlock()
	_, err := m.f.WriteAt(p, off)
	switch {
	case !m.direct && errors.Is(err, unix.EIO):
		return lossError{err} // any page may be lost
	case err != nil:
		return err
	}
	return asLoss(m.writable())
}

func asLoss(err error) error {
	if err != nil {
		return lossError{err}
	}
	return nil
}

// writable fails if the file system has become read-only after an internal error. Its syncs then still succeed, although there may be
// pages that it will never write.
func (m *linuxFile) writable() error {
	frozen, err := m.frozen(m.fd)
	if frozen {
		err = unix.EROFS
	}
	return err
}

// readOnly reports whether the file system of a file is read-only.
func readOnly(fd int) (bool, error) {
	var st unix.Statfs_t
	err := again(func() error { return unix.Fstatfs(fd, &st) })
	return err == nil && st.Flags&unix.ST_RDONLY != 0, err
}

func (m *linuxFile) writeDurably(p []byte, off int64) error {
	if m.dsync == nil {
		return errUnsupported
	}
	if !m.direct || isAligned(p) {
		return m.pwritev2(p, off)
	}
	return eachAligned(p, off, func(buf, p []byte, off int64) error {
		copy(buf, p)
		return m.pwritev2(buf, off)
	})
}

func (m *linuxFile) pwritev2(p []byte, off int64) error {
	defer func() { m.iov[0] = nil }()
	for len(p) > 0 {
		m.iov[0] = p
		n, err := unix.Pwritev2(int(m.dsync.Fd()), m.iov[:], off, unix.RWF_DSYNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue // this writes the octets again, and does not only repeat the sync
		case err != nil:
			return unsupported(err)
		case n <= 0:
			return unix.EIO
		}
		p, off = p[n:], off+int64(n)
	}
	return m.writable()
}

func (m *linuxFile) punch(off, n int64) error {
	return m.fallocate(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

func (m *linuxFile) zero(off, n int64) error {
	return m.fallocate(unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

func (m *linuxFile) fallocate(mode uint32, off, n int64) error {
	if m.always {
		m.serial.Lock()
		defer m.serial.Unlock()
	}
	err := again(func() error { return unix.Fallocate(m.fd, mode, off, n) })
	if err != nil {
		return unsupported(err)
	}
	if !m.always {
		return nil
	}
	return asLoss(m.sync()) // O_DSYNC applies only to writes
}

func (m *linuxFile) sync() error {
	if err := unix.Fdatasync(m.fd); err != nil { // EINTR too: see package fsync
		return err
	}
	return m.writable()
}

func (m *linuxFile) close() error {
	if m.dsync == nil {
		return m.f.Close()
	}
	return errors.Join(m.dsync.Close(), m.f.Close())
}

// again repeats a call that a signal has interrupted. It must not be used for a sync.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// unsupported returns errUnsupported for the errors by which a kernel, file system or device
// reports that it lacks an operation.
func unsupported(err error) error {
	for _, no := range []unix.Errno{unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL, unix.ENODEV} {
		if errors.Is(err, no) {
			return errUnsupported
		}
	}
	return err
}

const (
	// directAlign is the alignment of addresses for direct I/O: the largest block size of disks.
	directAlign = 4096
	// directMost is how many octets are copied at once.
	directMost = 1 << 20
)

// alignedBuffers holds spare buffers of directMost octets.
var alignedBuffers = make(chan []byte, 16)

func getAligned() []byte {
	select {
	case b := <-alignedBuffers:
		return b
	default:
	}
	b := make([]byte, directMost+directAlign)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (directAlign - 1)
	return b[skip : skip+directMost]
}

func putAligned(b []byte) {
	select {
	case alignedBuffers <- b:
	default:
	}
}

func isAligned(p []byte) bool {
	return len(p) == 0 || uintptr(unsafe.Pointer(&p[0]))%directAlign == 0
}

// eachAligned calls f with parts of p, and an aligned buffer for each of them.
func eachAligned(p []byte, off int64, f func(buf, p []byte, off int64) error) error {
	buf := getAligned()
	defer putAligned(buf)
	for len(p) > 0 {
		n := min(len(p), directMost)
		if err := f(buf[:n], p[:n], off); err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

package commit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/goiwarp/iwarp/stag"
)

// FileOptions say how a file is opened; nil opens an existing file as it is.
type FileOptions struct {
	// Size creates the file, or extends it, with this many octets, and reserves disk space
	// for all of them if the system can. 0: the file exists and stays as it is; if it has
	// holes, writing to them fails when the disk is full.
	Size int64
	// Direct bypasses the system's page cache (O_DIRECT). A write that does not fill blocks
	// of 4096 octets reads them first; the file size must be a multiple of 4096. Linux only.
	Direct bool
}

// A File is a file, or a block device, that is read and written by positioned I/O and
// made durable by fdatasync, or by its equivalent on the system. Register it as the
// buffer and as the Durable of one region. It survives everything that the disk
// survives; it cannot help against a disk that lies about its cache.
type File struct {
	*group
	*opened
	direct *direct // nil: through the page cache

	// whole is held for reading by all reads and writes, and for writing by a write of eight
	// octets, which reads see either complete or not begun.
	whole sync.RWMutex
}

// OpenFile opens a file or a block device for reading and writing. It refuses a file that is
// not writable. The file of another backing, of this process or (on Linux) another process, is
// refused with an error that matches [ErrInUse]. When OpenFile returns, a new file itself is
// durable, and so is its name.
func OpenFile(path string, o *FileOptions) (*File, error) {
	return openFile(host{}, path, o)
}

func openFile(sys system, path string, o *FileOptions) (*File, error) {
	if o == nil {
		o = new(FileOptions)
	}
	opened, err := open(sys, path, o.Size)
	if err != nil {
		return nil, err
	}
	b := &File{opened: opened}
	if o.Direct {
		if b.direct, err = openDirect(opened); err != nil {
			_ = opened.close()
			return nil, err
		}
	}
	b.group = newGroup(b.size, true, b.sync)
	if !o.Direct {
		b.begin = func(r Range) error { return writeOut(sys, b.f, r) }
	}
	return b, nil
}

// An opened file is the file of a backing, claimed for this process alone.
type opened struct {
	sys   system
	f     *os.File
	size  int64
	claim *claim
}

// open opens a file of at least size octets, which is durable except for its contents.
func open(sys system, path string, size int64) (*opened, error) {
	if size < 0 {
		return nil, fmt.Errorf("commit: %s: a size of %d octets", path, size)
	}
	flags := os.O_RDWR
	switch {
	case sys.isDevice(path):
		flags |= exclusive
	case size > 0:
		flags |= os.O_CREATE
	}
	f, err := sys.open(path, flags)
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	o := &opened{sys: sys, f: f}
	if err := o.settle(size); err != nil {
		_ = o.close()
		return nil, fmt.Errorf("commit: %s: %w", path, err)
	}
	return o, nil
}

func (o *opened) settle(want int64) error {
	if err := o.own(); err != nil {
		return err
	}
	size, err := o.sys.size(o.f)
	if err != nil {
		return err
	}
	if want > 0 {
		if err := grow(o.sys, o.f, max(size, want)); err != nil {
			return err
		}
		if size, err = o.sys.size(o.f); err != nil {
			return err
		}
	}
	if size == 0 || size < want {
		return fmt.Errorf("the file has %d octets and should have at least %d", size, max(want, 1))
	}
	o.size = size
	if err := o.sys.fsync(o.f); err != nil {
		return err
	}
	if err := uncache(o.sys, o.f); err != nil {
		return err
	}
	if !o.claim.file.Mode().IsRegular() { // the name of a device is on no disk
		return nil
	}
	return syncDir(o.sys, o.f)
}

// own claims the file for this backing alone.
func (o *opened) own() error {
	info, err := o.sys.stat(o.f)
	if err != nil {
		return err
	}
	if o.claim, err = claimFile(info); err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a device was opened exclusively
		return nil
	}
	return o.sys.lock(o.f)
}

// uncut fails if the file was truncated: what was written after its new end is lost, and
// no sync reports that.
func (o *opened) uncut() error {
	st, err := o.sys.stat(o.f)
	if err != nil {
		return err
	}
	if st.Mode().IsRegular() && st.Size() < o.size {
		return fmt.Errorf("commit: %s was cut to %d of %d octets: %w", o.f.Name(), st.Size(), o.size, syscall.EIO)
	}
	return nil
}

// close closes the file, which others may then open. Closing it twice is no error.
func (o *opened) close() error {
	err := o.sys.close(o.f)
	if o.claim != nil {
		o.claim.release()
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Size returns the size of the registered region in octets.
func (b *File) Size() int64 { return b.size }

// ReadAt reads octets. Beyond the end of the file the error is io.EOF.
func (b *File) ReadAt(p []byte, off int64) (int, error) {
	b.whole.RLock()
	defer b.whole.RUnlock()
	if b.direct != nil {
		return b.direct.readAt(p, off)
	}
	return b.sys.readAt(b.f, p, off)
}

// WriteAt writes octets, and records that they must be synced.
func (b *File) WriteAt(p []byte, off int64) (n int, err error) {
	began := b.began()
	n, err = b.write(p, off)
	size := int64(len(p))
	if err != nil && b.direct != nil {
		off, size = b.direct.blocks(off, size)
	}
	b.wrote(began, off, size, err)
	return n, err
}

func (b *File) write(p []byte, off int64) (int, error) {
	if isWord(off, len(p)) {
		b.whole.Lock()
		defer b.whole.Unlock()
	} else {
		b.whole.RLock()
		defer b.whole.RUnlock()
	}
	if b.direct != nil {
		return b.direct.writeAt(p, off)
	}
	return b.sys.writeAt(b.f, p, off)
}

// isWord reports whether the n octets at off are eight aligned ones, which are written at once.
func isWord(off int64, n int) bool { return n == stag.AtomicLen && off%stag.AtomicLen == 0 }

// Atomic implements [stag.AtomicBuffer]: readers through the same File see eight octets, at a
// multiple of eight, either all old or all new. On the disk they are in one sector.
func (b *File) Atomic() bool { return true }

func (b *File) sync([]Range) error {
	if err := datasync(b.sys, b.f); err != nil {
		return err
	}
	return b.uncut()
}

// Close closes the file, without a sync. Close the regions that use it first. Close may be
// called again.
func (b *File) Close() error {
	b.group.close()
	if b.direct != nil {
		_ = b.sys.close(b.direct.f)
	}
	return b.opened.close()
}

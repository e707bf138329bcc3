package commit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// FileOptions say how a file is opened; nil means as it is.
type FileOptions struct {
	// Size makes the file, or grows it, to so many octets, with room on the disk for all of
	// it where the system can reserve it. 0: the file is there and stays as it is; where it
	// has holes, writing to them fails when the disk is full.
	Size int64
	// Direct goes past the system's page cache (O_DIRECT). Octets that do not fill blocks
	// of 4096 are read first. Linux only.
	Direct bool
}

// A File is a file, or a block device, that is read and written by positioned I/O and
// made durable by fdatasync, or what the system has in its place. Register it as the
// buffer and as the Durable of one region. It survives everything that the disk
// survives; a disk that lies about its cache is beyond it.
type File struct {
	*group
	f      *os.File
	size   int64
	direct *direct // nil: through the page cache
}

// OpenFile opens a file or a block device for reading and writing; one that cannot be
// written to is refused. A file that is new is durable itself, with its name, when OpenFile returns.
func OpenFile(path string, o *FileOptions) (*File, error) {
	if o == nil {
		o = new(FileOptions)
	}
	f, size, err := open(path, o.Size)
	if err != nil {
		return nil, err
	}
	b := &File{f: f, size: size}
	if o.Direct {
		if b.direct, err = openDirect(path, size); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	b.group = newGroup(size, true, func([]Range) error { return datasync(f) })
	if !o.Direct {
		b.begin = func(r Range) { writeOut(f, r) }
	}
	return b, nil
}

// open opens a file of at least size octets, which is durable but for its contents.
func open(path string, size int64) (*os.File, int64, error) {
	flags := os.O_RDWR
	if size > 0 {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("commit: %w", err)
	}
	if size, err = settle(f, size); err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("commit: %s: %w", path, err)
	}
	return f, size, nil
}

func settle(f *os.File, want int64) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd) // of a block device, too
	if err != nil {
		return 0, err
	}
	if want > 0 {
		if err := grow(f, max(size, want)); err != nil {
			return 0, err
		}
		if size, err = f.Seek(0, io.SeekEnd); err != nil {
			return 0, err
		}
	}
	if size == 0 || size < want {
		return 0, fmt.Errorf("the file has %d octets and should have at least %d", size, max(want, 1))
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	if err := uncache(f); err != nil {
		return 0, err
	}
	return size, syncDir(filepath.Dir(f.Name()))
}

// lengthen is grow without room for what is new.
func lengthen(f *os.File, size int64) error {
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// Size is that of the registered region, in octets.
func (b *File) Size() int64 { return b.size }

// ReadAt reads octets.
func (b *File) ReadAt(p []byte, off int64) (int, error) {
	if b.direct != nil {
		return b.direct.readAt(p, off)
	}
	return b.f.ReadAt(p, off)
}

// WriteAt writes octets, and remembers that they are to be synced.
func (b *File) WriteAt(p []byte, off int64) (n int, err error) {
	began := b.began()
	if b.direct != nil {
		n, err = b.direct.writeAt(p, off)
	} else {
		n, err = b.f.WriteAt(p, off)
	}
	b.wrote(began, off, len(p), err)
	return n, err
}

// Close closes the file, without a sync, when the regions that it is registered as are
// closed.
func (b *File) Close() error {
	b.close()
	if b.direct != nil {
		_ = b.direct.f.Close()
	}
	return b.f.Close()
}

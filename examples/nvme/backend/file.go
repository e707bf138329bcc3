package backend

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/goiwarp/iwarp/internal/fsync"
)

// FileConfig describes how a file, or a block device, is opened.
type FileConfig struct {
	Path string

	// Size makes the file, or grows it, to this number of octets; 0: the file must exist. A larger
	// file does not shrink. No room is reserved for new octets: writes fail with ErrNoSpace once
	// the file system is full. For a block device it must be 0.
	Size int64

	// BlockSize is the size of a logical block. 0: 4096 for a file, the sector size for a block
	// device. It cannot be less than the sector size.
	BlockSize int

	ReadOnly bool

	// Sync makes every write durable before it returns (O_DSYNC). The Backend is then not
	// volatile.
	Sync bool

	// Direct bypasses the page cache of the system (O_DIRECT; Linux only). Buffers that do not
	// begin at a multiple of 4096 are copied.
	Direct bool

	// Discard makes Trim of a block device use BLKDISCARD, after which the device may return
	// anything: see [Traits.KeepsTrimmed]. Without it, Trim makes the octets zeros.
	Discard bool
}

// OpenFile opens a regular file as a Backend; its size is rounded down to the block size. If another
// Backend of this or another process, or a backing of package commit, has the file open, OpenFile
// returns an error that matches [commit.ErrInUse].
//
// On Linux a write with FUA uses pwritev2 with RWF_DSYNC, and holes are punched with fallocate; if the
// kernel or the file system does not support these, other means are used. On other systems FUA is a
// sync, and zeros are written.
//
// Octets that an earlier process has written without a sync are durable when OpenFile returns.
func OpenFile(c FileConfig) (Backend, error) {
	f, err := openRegular(c)
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	v, err := fileVolume(f, c)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("backend: %s: %w", c.Path, err)
	}
	return v, nil
}

// openRegular opens the file, and looks at it before it can be changed.
func openRegular(c FileConfig) (*os.File, error) {
	if info, err := os.Stat(c.Path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file (a block device is opened with block:%s)", c.Path, c.Path)
	}
	if c.Discard {
		return nil, fmt.Errorf("%s: the option discard is one of block devices", c.Path)
	}
	if c.Size < 0 {
		return nil, fmt.Errorf("%s: a size of %d octets", c.Path, c.Size)
	}
	flags, err := openFlags(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	if c.Size > 0 && !c.ReadOnly {
		flags |= os.O_CREATE
	}
	return os.OpenFile(c.Path, flags, 0o600)
}

func fileVolume(f *os.File, c FileConfig) (*volume, error) {
	if err := lockFile(f); err != nil {
		return nil, err
	}
	size, err := settleFile(f, c)
	if err != nil {
		return nil, err
	}
	if c.BlockSize == 0 {
		c.BlockSize = defaultBlock
	}
	g, err := newGeometry(size, c.BlockSize, c.ReadOnly)
	if err != nil {
		return nil, err
	}
	m, traits, err := fileMedium(f, c, g)
	if err != nil {
		return nil, err
	}
	v, err := newVolume(g, m, !c.Sync && !c.ReadOnly, traits)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// settleFile gives f the size that is asked for, makes it durable as it is, and returns its size.
func settleFile(f *os.File, c FileConfig) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if size = info.Size(); c.ReadOnly {
		return size, nil
	}
	if size < c.Size {
		if err := f.Truncate(c.Size); err != nil {
			return 0, err
		}
		size = c.Size
	}
	if err := fsync.File(f); err != nil {
		return 0, err
	}
	if c.Size == 0 || runtime.GOOS == "windows" { // there a directory cannot be synced, and need not
		return size, nil
	}
	dir, err := directoryOf(f)
	if err != nil {
		return 0, err
	}
	return size, errors.Join(fsync.File(dir), dir.Close())
}

// directoryOf opens the directory in which f was made. If the path of f is a symbolic link, that is the directory of its target.
func directoryOf(f *os.File) (*os.File, error) {
	path, err := filepath.EvalSymlinks(f.Name())
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Dir(path))
}

// readFull reads all of p. A file that has become shorter is an error.
func readFull(f *os.File, p []byte, off int64) error {
	_, err := f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

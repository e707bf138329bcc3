package commit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/internal/fsync"
)

// A system is the operating system as backings use it. host implements it; tests record the
// calls, and make them fail.
type system interface {
	// isDevice reports whether there is a block device at path.
	isDevice(path string) bool
	open(path string, flags int) (*os.File, error)
	stat(f *os.File) (os.FileInfo, error)
	// lock locks a file against other processes until it is closed. It fails with ErrInUse.
	lock(f *os.File) error
	// size returns the size of a file or of a block device.
	size(f *os.File) (int64, error)
	truncate(f *os.File, size int64) error
	// fsync makes the contents of a file or directory durable, and all its metadata.
	fsync(f *os.File) error
	// fdatasync makes the contents durable, and as much of the metadata as reading them
	// requires.
	fdatasync(f *os.File) error
	readAt(f *os.File, p []byte, off int64) (int, error)
	writeAt(f *os.File, p []byte, off int64) (int, error)
	close(f *os.File) error

	platform
}

// host is the real system.
type host struct{}

func (host) open(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

func (host) stat(f *os.File) (os.FileInfo, error) { return f.Stat() }

func (host) size(f *os.File) (int64, error) { return f.Seek(0, io.SeekEnd) }

func (host) truncate(f *os.File, size int64) error { return f.Truncate(size) }

func (host) fsync(f *os.File) error { return fsync.File(f) }

func (host) fdatasync(f *os.File) error { return fsync.Data(f) }

func (host) readAt(f *os.File, p []byte, off int64) (int, error) { return f.ReadAt(p, off) }

func (host) writeAt(f *os.File, p []byte, off int64) (int, error) { return f.WriteAt(p, off) }

func (host) close(f *os.File) error { return f.Close() }

// lengthen is like grow, but reserves no disk space.
func lengthen(sys system, f *os.File, size int64) error {
	st, err := sys.stat(f)
	if err != nil || !st.Mode().IsRegular() || st.Size() >= size {
		return err
	}
	return sys.truncate(f, size)
}

// syncName makes the name of f durable: it syncs the directory that contains f, after resolving
// symbolic links.
func syncName(sys system, f *os.File) error {
	path, err := filepath.EvalSymlinks(f.Name())
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err != nil {
		return err
	}
	have, err := sys.stat(f)
	if err != nil {
		return err
	}
	if !os.SameFile(there, have) {
		return fmt.Errorf("another file has taken its place while it was opened")
	}
	d, err := sys.open(filepath.Dir(path), os.O_RDONLY)
	if err != nil {
		return err
	}
	err = sys.fsync(d)
	_ = sys.close(d)
	return err
}

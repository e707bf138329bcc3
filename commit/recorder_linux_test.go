package commit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A recorder is the system, with a record of the calls that backings make. A call is a word
// for the operation, the last part of the path, and the other arguments that matter.
type recorder struct {
	host
	mu          sync.Mutex
	calls       []string
	descriptors int                     // that are open
	fail        func(call string) error // asked before a call is made; nil: none fails
	mode        uint32                  // of the file, unless 0
	readOnly    bool                    // the file system has become
	boundless   bool                    // the file system tells no size
	mem         []byte                  // that is mapped
}

// begins records a call, and reports whether it is to fail.
func (r *recorder) begins(format string, args ...any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	r.calls = append(r.calls, call)
	if r.fail == nil {
		return nil
	}
	return r.fail(call)
}

// took returns the calls since it was last called.
func (r *recorder) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *recorder) fails(f func(call string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

func base(f *os.File) string { return filepath.Base(f.Name()) }

func (r *recorder) isDevice(string) bool { return r.mode == unix.S_IFBLK }

var flagNames = []struct {
	flag int
	name string
}{{os.O_RDWR, " rw"}, {os.O_CREATE, " create"}, {os.O_EXCL, " excl"}, {unix.O_DIRECT, " direct"}}

func (r *recorder) open(path string, flags int) (*os.File, error) {
	words := ""
	for _, f := range flagNames {
		if flags&f.flag != 0 {
			words += f.name
			flags &^= f.flag
		}
	}
	if flags != 0 {
		words += fmt.Sprintf(" %#x", flags)
	}
	if err := r.begins("open %s%s", filepath.Base(path), words); err != nil {
		return nil, err
	}
	var mine int
	for _, f := range flagNames {
		if strings.Contains(words, f.name) && f.flag != unix.O_DIRECT { // tmpfs has none
			mine |= f.flag
		}
	}
	f, err := r.host.open(path, mine)
	if err == nil {
		r.mu.Lock()
		r.descriptors++
		r.mu.Unlock()
	}
	return f, err
}

func (r *recorder) close(f *os.File) error {
	r.mu.Lock()
	r.descriptors--
	r.mu.Unlock()
	return errors.Join(r.host.close(f), r.begins("close %s", base(f)))
}

func (r *recorder) stat(f *os.File) (os.FileInfo, error) {
	if err := r.begins("stat %s", base(f)); err != nil {
		return nil, err
	}
	info, err := r.host.stat(f)
	if err == nil && r.mode == unix.S_IFBLK {
		return deviceInfo{info}, nil
	}
	return info, err
}

// A deviceInfo is what is known of a block device. It has no size.
type deviceInfo struct{ os.FileInfo }

func (deviceInfo) Size() int64 { return 0 }

func (deviceInfo) Mode() os.FileMode { return os.ModeDevice }

func (r *recorder) size(f *os.File) (int64, error) {
	if err := r.begins("size %s", base(f)); err != nil {
		return 0, err
	}
	return r.host.size(f)
}

func (r *recorder) fstat(f *os.File) (unix.Stat_t, error) {
	if err := r.begins("fstat %s", base(f)); err != nil {
		return unix.Stat_t{}, err
	}
	st, err := r.host.fstat(f)
	if r.mode != 0 {
		st.Mode = r.mode
	}
	return st, err
}

func (r *recorder) fstatfs(f *os.File) (unix.Statfs_t, error) {
	if err := r.begins("fstatfs %s", base(f)); err != nil {
		return unix.Statfs_t{}, err
	}
	st, err := r.host.fstatfs(f)
	if r.readOnly {
		st.Flags |= unix.ST_RDONLY
	}
	if r.boundless {
		st.Bsize, st.Blocks, st.Bfree, st.Bavail = 0, 0, 0, 0
	}
	return st, err
}

func (r *recorder) readAt(f *os.File, p []byte, off int64) (int, error) {
	if err := r.begins("read %s %d+%d", base(f), off, len(p)); err != nil {
		return 0, err
	}
	return r.host.readAt(f, p, off)
}

func (r *recorder) writeAt(f *os.File, p []byte, off int64) (int, error) {
	if err := r.begins("write %s %d+%d", base(f), off, len(p)); err != nil {
		return 0, err
	}
	return r.host.writeAt(f, p, off)
}

func (r *recorder) mmap(f *os.File, size, flags int) ([]byte, error) {
	if err := r.begins("mmap %s %d %#x", base(f), size, flags); err != nil {
		return nil, err
	}
	mem, err := r.host.mmap(f, size, unix.MAP_SHARED)
	r.mem = mem
	return mem, err
}

// part names octets of the mapping.
func (r *recorder) part(mem []byte) string {
	off := cap(r.mem) - cap(mem)
	return fmt.Sprintf("%d+%d", off, len(mem))
}

func (r *recorder) msync(mem []byte) error {
	return first(r.begins("msync %s", r.part(mem)), func() error { return r.host.msync(mem) })
}

func (r *recorder) munmap(mem []byte) error {
	return errors.Join(r.host.munmap(mem), r.begins("munmap %d", len(mem)))
}

func (r *recorder) writeBack(mem []byte) { _ = r.begins("write back %s", r.part(mem)) }

func (r *recorder) fence() { _ = r.begins("fence") }

// first is err, or what call returns.
func first(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

func (r *recorder) lock(f *os.File) error {
	return first(r.begins("lock %s", base(f)), func() error { return r.host.lock(f) })
}

func (r *recorder) truncate(f *os.File, size int64) error {
	return first(r.begins("truncate %s %d", base(f), size), func() error { return r.host.truncate(f, size) })
}

func (r *recorder) fsync(f *os.File) error {
	return first(r.begins("fsync %s", base(f)), func() error { return r.host.fsync(f) })
}

func (r *recorder) fdatasync(f *os.File) error {
	return first(r.begins("fdatasync %s", base(f)), func() error { return r.host.fdatasync(f) })
}

func (r *recorder) fallocate(f *os.File, size int64) error {
	return first(r.begins("fallocate %s %d", base(f), size), func() error { return r.host.fallocate(f, size) })
}

func (r *recorder) forget(f *os.File) error {
	return first(r.begins("forget %s", base(f)), func() error { return r.host.forget(f) })
}

func (r *recorder) syncFileRange(f *os.File, g Range) error {
	return first(r.begins("begin %s %d+%d", base(f), g.Off, g.Len), func() error { return r.host.syncFileRange(f, g) })
}

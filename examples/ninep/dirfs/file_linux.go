package dirfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

// file is a file, directory or symbolic link.
type file struct {
	p9.DefaultWalkGetAttr

	// device is the device of the root: inode numbers of other devices are mixed with the number of their device.
	device uint64
	// desc is opened with O_PATH. An os.File is not closed during a call that uses it.
	desc   *os.File
	opened atomic.Pointer[opening] // nil: the client has not opened it

	// reading orders readdir.
	reading sync.Mutex

	locking sync.Mutex
	locks   *os.File // the descriptor that holds the locks; nil: no lock was taken
}

var _ p9.File = (*file)(nil)

// An opening is a file that the client has opened.
type opening struct {
	desc     *os.File
	writable bool
}

// newFile makes a file from a descriptor that was opened with O_PATH.
func newFile(fd int) *file { return &file{desc: os.NewFile(uintptr(fd), "9p")} }

// errno converts an error of the system to the error number that p9 expects, unless with has done so already. p9 would take other forms
// for EACCES or EEXIST even if they are not.
func errno(err error) error {
	var (
		given linux.Errno
		own   unix.Errno
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &given):
		return given
	case errors.As(err, &own):
		return linux.Errno(own)
	}
	return linux.EBADF
}

// with calls do with the O_PATH descriptor, which stays open meanwhile.
func (f *file) with(do func(fd int) error) error { return control(f.desc, do) }

// withOpened calls do with the descriptor that the client has opened.
func (f *file) withOpened(do func(fd int) error) error {
	o := f.opened.Load()
	if o == nil {
		return linux.EBADF
	}
	return control(o.desc, do)
}

// control calls do again if a signal has interrupted it, so do must not be a sync.
func control(desc *os.File, do func(fd int) error) error {
	c, err := desc.SyscallConn()
	if err != nil {
		return linux.EBADF
	}
	var failed error
	if err := c.Control(func(fd uintptr) {
		failed = again(func() error { return do(int(fd)) })
	}); err != nil {
		return linux.EBADF
	}
	return errno(failed)
}

// again repeats a call until no signal interrupts it, as package os does. The Go runtime sends signals to its own threads, which interrupt
// calls for a file of FUSE or of another server. The client must not get such errors.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR { //nolint:errorlint // the system returns this value
			return err
		}
	}
}

// open calls open(2).
func open(path string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// descriptors is the directory of the descriptors of the process.
const descriptors = "/proc/self/fd"

// self returns a path that leads to the file itself, wherever its name is, for calls that do not take an O_PATH descriptor.
func self(fd int) string { return descriptors + "/" + strconv.Itoa(fd) }

// Check returns why no file could be opened: there is no /proc. A client would be told that the files do not exist.
func Check() error { return check(descriptors) }

func check(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("files are opened by way of /proc, which must be mounted: %w", err)
	}
	return nil
}

// checkName refuses names that are not the name of one directory entry.
func checkName(names ...string) error {
	for _, name := range names {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return linux.EINVAL
		}
	}
	return nil
}

// Close releases the descriptors, and ends the locks.
func (f *file) Close() error {
	err := f.desc.Close()
	if o := f.opened.Load(); o != nil {
		err = errors.Join(err, o.desc.Close())
	}
	f.endLocks()
	return errno(err)
}

// Walk opens the entries one after the other. Without names it returns a copy of f that is not open.
func (f *file) Walk(names []string) ([]p9.QID, p9.File, error) {
	if err := checkName(names...); err != nil {
		return nil, nil, err
	}
	at, err := f.clone()
	if err != nil {
		return nil, nil, err
	}
	qids := make([]p9.QID, 0, len(names))
	for _, name := range names {
		next, err := at.child(name)
		_ = at.Close()
		if err != nil {
			return nil, nil, err
		}
		at = next
		st, err := at.stat()
		if err != nil {
			_ = at.Close()
			return nil, nil, err
		}
		qids = append(qids, at.qid(st))
	}
	return qids, at, nil
}

// clone returns a File of the same inode that is not open.
func (f *file) clone() (*file, error) {
	return f.derive(func(own int) (int, error) { return unix.FcntlInt(uintptr(own), unix.F_DUPFD_CLOEXEC, 0) })
}

// child opens an entry of the directory.
func (f *file) child(name string) (*file, error) {
	return f.derive(func(dir int) (int, error) {
		return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// derive makes a file from the descriptor that open derives from that of f.
func (f *file) derive(open func(own int) (fd int, err error)) (*file, error) {
	var fd int
	err := f.with(func(own int) (err error) {
		fd, err = open(own)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := newFile(fd)
	c.device = f.device
	return c, nil
}

// Rename is not called by the server, which uses RenameAt.
func (*file) Rename(p9.File, string) error { return linux.ENOSYS }

// Renamed has nothing to do: a descriptor does not depend on names.
func (*file) Renamed(p9.File, string) {}

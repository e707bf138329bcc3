package dirfs

import (
	"errors"
	"io"
	"os"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/fsync"
)

// Flags of Tlopen and Tlcreate, which equal those of open(2) on most machines, but not on all.
const (
	flagExcl   = 0o200
	flagTrunc  = 0o1000
	flagDsync  = 0o10000
	flagSyncOn = 0o4000000
)

// openFlags returns the flags for open(2), without append: Linux's client writes at the end by itself.
func openFlags(flags p9.OpenFlags) int {
	own := flags.OSFlags() | unix.O_CLOEXEC
	if flags&flagTrunc != 0 {
		own |= unix.O_TRUNC
	}
	if flags&flagDsync != 0 {
		own |= unix.O_DSYNC
	}
	if flags&flagSyncOn != 0 {
		own |= unix.O_SYNC
	}
	return own
}

// Open opens regular files and directories. The client's own kernel opens pipes and devices.
func (f *file) Open(flags p9.OpenFlags) (p9.QID, uint32, error) {
	st, err := f.stat()
	if err != nil {
		return p9.QID{}, 0, err
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return p9.QID{}, 0, linux.EPERM
	}
	return f.qid(st), 0, f.reopen(openFlags(flags))
}

// reopen opens the inode.
func (f *file) reopen(flags int) error {
	var fd int
	err := f.with(func(own int) (err error) {
		fd, err = unix.Open(self(own), flags, 0)
		return err
	})
	if err != nil {
		return err
	}
	f.use(fd, flags)
	return nil
}

// use makes fd the descriptor that the client has opened.
func (f *file) use(fd, flags int) {
	f.opened.Store(&opening{desc: os.NewFile(uintptr(fd), "9p"), writable: flags&unix.O_ACCMODE != unix.O_RDONLY})
}

// Create makes a regular file and opens it. If another client has made the file meanwhile, it is opened unless the client requires a new one.
func (f *file) Create(name string, flags p9.OpenFlags, mode p9.FileMode, _ p9.UID, gid p9.GID) (p9.File, p9.QID, uint32, error) {
	if err := checkName(name); err != nil {
		return nil, p9.QID{}, 0, err
	}
	c, err := f.create(name, openFlags(flags), mode, gid)
	if errors.Is(err, linux.EEXIST) && flags&flagExcl == 0 {
		c, err = f.existing(name, flags)
	}
	if err != nil {
		return nil, p9.QID{}, 0, err
	}
	st, err := c.stat()
	if err != nil {
		_ = c.Close()
		return nil, p9.QID{}, 0, err
	}
	return c, c.qid(st), 0, nil
}

func (f *file) create(name string, flags int, mode p9.FileMode, gid p9.GID) (*file, error) {
	var fd int
	err := f.with(func(dir int) (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, uint32(mode)&0o7777)
		return err
	})
	if err != nil {
		return nil, err
	}
	own, err := open(self(fd), unix.O_PATH)
	if err != nil {
		_ = unix.Close(fd)
		return nil, errno(err)
	}
	c := newFile(own)
	c.device = f.device
	c.use(fd, flags)
	if err := c.setGroup(gid); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// existing opens a regular file that exists already; the server takes every created file for a regular one.
func (f *file) existing(name string, flags p9.OpenFlags) (*file, error) {
	c, err := f.child(name)
	if err != nil {
		return nil, err
	}
	st, err := c.stat()
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = linux.EEXIST
	}
	if err == nil {
		err = c.reopen(openFlags(flags))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ReadAt reads from an open file.
func (f *file) ReadAt(p []byte, offset int64) (int, error) {
	var n int
	err := f.withOpened(func(fd int) (err error) {
		n, err = unix.Pread(fd, p, offset)
		return err
	})
	if err != nil {
		return 0, err
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteAt writes to an open file.
func (f *file) WriteAt(p []byte, offset int64) (int, error) {
	var n int
	err := f.withOpened(func(fd int) (err error) {
		n, err = unix.Pwrite(fd, p, offset)
		return err
	})
	return max(n, 0), err
}

// FSync writes what the system holds of the file to the device. It does not repeat a call that has failed: see package fsync.
func (f *file) FSync() error {
	o := f.opened.Load()
	if o == nil {
		return linux.EBADF
	}
	return errno(fsync.File(o.desc))
}

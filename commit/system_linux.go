package commit

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/pmem"
)

// platform is what backings use on Linux only.
type platform interface {
	fstat(f *os.File) (unix.Stat_t, error)
	fstatfs(f *os.File) (unix.Statfs_t, error)
	// fallocate makes f size octets long, with disk space for all of them.
	fallocate(f *os.File, size int64) error
	// forget drops the cached pages of f, so that the next read reads the disk.
	forget(f *os.File) error
	// syncFileRange starts to write the dirty pages of r.
	syncFileRange(f *os.File, r Range) error
	mmap(f *os.File, size, flags int) ([]byte, error)
	msync(mem []byte) error
	munmap(mem []byte) error
	// writeBack writes back cache lines, and fence waits for that.
	writeBack(mem []byte)
	fence()
}

func (host) isDevice(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice
}

// sameDevice reports whether two files, perhaps different nodes, are the same block device.
func sameDevice(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Mode&syscall.S_IFMT == syscall.S_IFBLK && y.Mode&syscall.S_IFMT == syscall.S_IFBLK && x.Rdev == y.Rdev
}

// exclusive is the flag to open a block device with: the open fails if the device is mounted, or
// if another process has it open.
const exclusive = unix.O_EXCL

// lockless reports whether err is that of a file system without locks.
func lockless(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EINVAL)
}

func (host) lock(f *os.File) error {
	err := withFD(f, "flock", func(fd int) error {
		return again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	})
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("%w: %w", ErrInUse, err)
	case lockless(err):
		return nil
	}
	return err
}

func (host) fstat(f *os.File) (st unix.Stat_t, err error) {
	err = withFD(f, "fstat", func(fd int) error { return unix.Fstat(fd, &st) })
	return st, err
}

func (host) fstatfs(f *os.File) (st unix.Statfs_t, err error) {
	err = withFD(f, "fstatfs", func(fd int) error { return unix.Fstatfs(fd, &st) })
	return st, err
}

func (host) fallocate(f *os.File, size int64) error {
	return withFD(f, "fallocate", func(fd int) error { return unix.Fallocate(fd, 0, 0, size) })
}

func (host) forget(f *os.File) error {
	return withFD(f, "fadvise64", func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
}

func (host) syncFileRange(f *os.File, r Range) error {
	return withFD(f, "sync_file_range", func(fd int) error {
		return unix.SyncFileRange(fd, r.Off, r.Len, unix.SYNC_FILE_RANGE_WRITE)
	})
}

func (host) mmap(f *os.File, size, flags int) (mem []byte, err error) {
	err = withFD(f, "mmap", func(fd int) (err error) {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
		return err
	})
	return mem, err
}

func (host) msync(mem []byte) error {
	return os.NewSyscallError("msync", unix.Msync(mem, unix.MS_SYNC))
}

func (host) munmap(mem []byte) error { return os.NewSyscallError("munmap", unix.Munmap(mem)) }

func (host) writeBack(mem []byte) { pmem.WriteBack(mem) }

func (host) fence() { pmem.Fence() }

// withFD makes the call of that name, which its errors contain.
func withFD(f *os.File, name string, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError(name, result)
}

// again repeats a call that a signal interrupts. It must not be used for a sync: see asLoss.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

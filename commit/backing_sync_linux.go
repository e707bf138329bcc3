package commit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the contents of f durable, and of what is known about it as much as
// reading them takes.
func datasync(f *os.File) error {
	return withFD(f, func(fd int) error { return again(func() error { return unix.Fdatasync(fd) }) })
}

// grow makes f size octets long and reserves room for them, so that it does not run out
// when it is too late. Where there is not enough of it nothing is reserved: a file
// system may give all that it has before it says so, and others would run out.
func grow(f *os.File, size int64) error {
	err := withFD(f, func(fd int) error {
		var have unix.Stat_t
		var room unix.Statfs_t
		if err := errors.Join(unix.Fstat(fd, &have), unix.Fstatfs(fd, &room)); err != nil {
			return err
		}
		if need := size - have.Blocks*512; need > 0 && uint64(need)/uint64(room.Bsize) >= room.Bavail {
			return unix.ENOSPC
		}
		err := again(func() error { return unix.Fallocate(fd, 0, 0, size) })
		if errors.Is(err, unix.ENOSPC) { // others were faster: what was reserved goes back
			return errors.Join(err, unix.Ftruncate(fd, have.Size))
		}
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	return err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

func withFD(f *os.File, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return err
	}
	return result
}

func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

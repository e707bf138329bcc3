package transfer

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lengthen makes an empty file size octets long, with room for all of them: a disk that is full is told of before they come, and not
// by the end of the connection. There is no such promise on a file system that reserves nothing.
func lengthen(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = reserve(int(fd), size) }); err != nil {
		return err
	}
	switch {
	case result == nil:
		return nil
	case errors.Is(result, errors.ErrUnsupported):
		return f.Truncate(size)
	}
	return &fs.PathError{Op: "fallocate", Path: f.Name(), Err: result}
}

// reserve reserves nothing where there is not enough: a file system may give all that it has before it says so, and others would
// run out.
func reserve(fd int, size int64) error {
	var room syscall.Statfs_t
	if err := syscall.Fstatfs(fd, &room); err != nil {
		return err
	}
	if room.Blocks > 0 && uint64(size)/uint64(room.Bsize) >= room.Bavail { // 0: it tells nothing
		return syscall.ENOSPC
	}
	for {
		if err := syscall.Fallocate(fd, 0, 0, size); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

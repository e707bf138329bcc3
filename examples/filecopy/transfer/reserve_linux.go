package transfer

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lengthen makes an empty file size octets long, and reserves room for all of them: a full disk is reported before the octets arrive,
// and not by the end of the connection. A file system that does not reserve space gives no such guarantee.
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

// reserve reserves nothing if there is not enough space: a file system may allocate all that it has before it fails, and other users
// would run out.
func reserve(fd int, size int64) error {
	var room syscall.Statfs_t
	if err := syscall.Fstatfs(fd, &room); err != nil {
		return err
	}
	if room.Blocks > 0 && uint64(size)/uint64(room.Bsize) >= room.Bavail { // 0: the size is unknown
		return syscall.ENOSPC
	}
	for {
		if err := syscall.Fallocate(fd, 0, 0, size); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

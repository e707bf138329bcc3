package commit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the contents of f durable, and of what is known about it as much as
// reading them takes.
func datasync(f *os.File) error {
	err := withFD(f, func(fd int) error { return again(func() error { return unix.Fdatasync(fd) }) })
	if err != nil {
		return err
	}
	return writable(f)
}

// writeOut has the system begin to write the pages of r that have changed, from its beginning
// to the end of f if r is empty. It takes no error from who syncs: the kernel keeps one of a
// write until then.
func writeOut(f *os.File, r Range) {
	_ = withFD(f, func(fd int) error { return unix.SyncFileRange(fd, r.Off, r.Len, unix.SYNC_FILE_RANGE_WRITE) })
}

// writable fails if the file system of f takes no more changes. Its syncs succeed all
// the same, though there may be pages that it will never write.
func writable(f *os.File) error {
	var st unix.Statfs_t
	if err := withFD(f, func(fd int) error { return unix.Fstatfs(fd, &st) }); err != nil {
		return err
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return unix.EROFS
	}
	return nil
}

// uncache has the system read f from the disk again, of which there are no changes any
// more that it should write. What it could not write when another process had it open
// would else be read as if it were there.
func uncache(f *os.File) error {
	return withFD(f, func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
}

// grow makes f size octets long, if it is shorter, and reserves room for all of them, so
// that it does not run out when it is too late. Where there is not enough of it nothing
// is reserved: a file system may give all that it has before it says so, and others would
// run out. Of a device nothing is asked.
func grow(f *os.File, size int64) error {
	err := withFD(f, func(fd int) error {
		var have unix.Stat_t
		var room unix.Statfs_t
		if err := errors.Join(unix.Fstat(fd, &have), unix.Fstatfs(fd, &room)); err != nil {
			return err
		}
		need := size - have.Blocks*512
		if have.Mode&unix.S_IFMT != unix.S_IFREG || have.Size >= size && need <= 0 {
			return nil
		}
		if need > 0 && uint64(need)/uint64(room.Bsize) >= room.Bavail {
			return unix.ENOSPC
		}
		err := again(func() error { return unix.Fallocate(fd, 0, 0, size) })
		if errors.Is(err, unix.ENOSPC) { // others were faster: what was reserved goes back
			return errors.Join(err, unix.Ftruncate(fd, have.Size))
		}
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return lengthen(f, size)
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

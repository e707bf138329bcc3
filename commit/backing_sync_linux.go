package commit

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// datasync makes the contents of f durable, and as much of its metadata as reading them
// requires.
func datasync(sys system, f *os.File) error {
	if err := sys.fdatasync(f); err != nil {
		return asLoss(err)
	}
	return writable(sys, f)
}

// writeOut makes the system begin to write the dirty pages of r. It does not wait for the writes, so that the next
// sync still reports their error, which the kernel keeps until then. But ext4 drops pages for which it finds no place
// on the disk, and no later call reports that. So an error of writeOut counts like an error of a sync. A system
// without this call is not an error.
func writeOut(sys system, f *os.File, r Range) error {
	err := sys.syncFileRange(f, r)
	if slices.ContainsFunc(uncallable, func(no unix.Errno) bool { return errors.Is(err, no) }) {
		return nil
	}
	return asLoss(err)
}

var uncallable = []unix.Errno{unix.ENOSYS, unix.EPERM, unix.EINVAL, unix.EOPNOTSUPP, unix.ESPIPE}

// statfs describes the file system of f. A file system in user space, or on a server, may be interrupted.
func statfs(sys system, f *os.File) (st unix.Statfs_t, err error) {
	err = again(func() error {
		st, err = sys.fstatfs(f)
		return err
	})
	return st, err
}

// writable fails if the file system of f has become read-only. Its syncs still succeed,
// although there may be pages that it will never write.
func writable(sys system, f *os.File) error {
	st, err := statfs(sys, f)
	if err == nil && st.Flags&unix.ST_RDONLY != 0 {
		err = unix.EROFS
	}
	return err
}

// uncache drops the pages of f from the page cache, so that they are read from the disk again.
// None of them is dirty. Otherwise a page that the system could not write for an earlier process
// would be read as if it were on the disk; so a kernel without this call is refused.
func uncache(sys system, f *os.File) error { return sys.forget(f) }

// grow makes f size octets long, if it is shorter, and reserves disk space for all of them, so
// that a later write cannot run out of it. If there is not enough space nothing is reserved: a
// file system may hand out all of its space before it fails, and others would run out. A
// device is left as it is. A file with as many blocks as it needs may nevertheless have
// holes, since other blocks count too, such as those beyond its end.
func grow(sys system, f *os.File, size int64) error {
	have, err := sys.fstat(f)
	if err != nil {
		return err
	}
	if have.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	need := size - have.Blocks*512
	if need > 0 {
		room, err := statfs(sys, f)
		if err != nil {
			return err
		}
		if room.Blocks > 0 && uint64(need)/uint64(room.Bsize) >= room.Bavail { // 0: not reported
			return unix.ENOSPC
		}
	}
	err = again(func() error { return sys.fallocate(f, size) })
	switch {
	case errors.Is(err, unix.ENOSPC) && have.Size >= size && need <= 0: // XFS may want space even if there is no hole
		return nil
	case errors.Is(err, unix.ENOSPC): // others were faster: give back what was reserved
		return errors.Join(err, sys.truncate(f, have.Size))
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
		return lengthen(sys, f, size)
	}
	return err
}

func syncDir(sys system, f *os.File) error { return syncName(sys, f) }

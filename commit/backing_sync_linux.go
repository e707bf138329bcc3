package commit

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// datasync makes the contents of f durable, and of what is known about it as much as
// reading them takes.
func datasync(sys system, f *os.File) error {
	if err := sys.fdatasync(f); err != nil {
		return asLoss(err)
	}
	return writable(sys, f)
}

// writeOut makes the system begin to write the pages of r that have changed. It does not wait for that, so that the next
// sync still reports an error of such a write, which the kernel keeps until then. But ext4 drops pages for which it
// finds no place on the disk, and no later call tells of that. So an error of this one is as that of a sync. A system
// without this call is no matter.
func writeOut(sys system, f *os.File, r Range) error {
	err := sys.syncFileRange(f, r)
	if slices.ContainsFunc(uncallable, func(no unix.Errno) bool { return errors.Is(err, no) }) {
		return nil
	}
	return asLoss(err)
}

var uncallable = []unix.Errno{unix.ENOSYS, unix.EPERM, unix.EINVAL, unix.EOPNOTSUPP, unix.ESPIPE}

// statfs is what is known of the file system of f. One in user space, or of a server, may be interrupted.
func statfs(sys system, f *os.File) (st unix.Statfs_t, err error) {
	err = again(func() error {
		st, err = sys.fstatfs(f)
		return err
	})
	return st, err
}

// writable fails if the file system of f takes no more changes. Its syncs succeed all
// the same, though there may be pages that it will never write.
func writable(sys system, f *os.File) error {
	st, err := statfs(sys, f)
	if err == nil && st.Flags&unix.ST_RDONLY != 0 {
		err = unix.EROFS
	}
	return err
}

// uncache drops the pages of f from the page cache, so that they are read from the disk again.
// None of them is still to be written. A page that the system could not write for an earlier
// process would else be read as if it were on the disk, and so a kernel without this call is refused.
func uncache(sys system, f *os.File) error { return sys.forget(f) }

// grow makes f size octets long, if it is shorter, and reserves room for all of them, so
// that it does not run out when it is too late. Where there is not enough of it nothing
// is reserved: a file system may give all that it has before it says so, and others would
// run out. Of a device nothing is asked. A file that has as many blocks as it needs may have
// holes all the same, since others are counted too, such as those beyond its end.
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
		if room.Blocks > 0 && uint64(need)/uint64(room.Bsize) >= room.Bavail { // 0: it tells nothing
			return unix.ENOSPC
		}
	}
	err = again(func() error { return sys.fallocate(f, size) })
	switch {
	case errors.Is(err, unix.ENOSPC) && have.Size >= size && need <= 0: // XFS may want room where there is no hole
		return nil
	case errors.Is(err, unix.ENOSPC): // others were faster: what was reserved goes back
		return errors.Join(err, sys.truncate(f, have.Size))
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
		return lengthen(sys, f, size)
	}
	return err
}

func syncDir(sys system, f *os.File) error { return syncName(sys, f) }

package dirfs

import (
	"errors"
	"io"
	"math"
	"os"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

// Lock never waits: a client that wants to wait repeats the request.
func (f *file) Lock(_ int, kind p9.LockType, _ p9.LockFlags, start, length uint64, _ string) (p9.LockStatus, error) {
	if start > math.MaxInt64 || length > math.MaxInt64 || f.opened.Load() == nil {
		return p9.LockStatusError, linux.EINVAL
	}
	lock := unix.Flock_t{Whence: io.SeekStart, Start: int64(start), Len: int64(length)}
	switch kind {
	case p9.ReadLock:
		lock.Type = unix.F_RDLCK
	case p9.WriteLock:
		lock.Type = unix.F_WRLCK
	case p9.Unlock:
		lock.Type = unix.F_UNLCK
	default:
		return p9.LockStatusError, linux.EINVAL
	}
	err := f.setLock(&lock)
	switch {
	case err == nil:
		return p9.LockStatusOK, nil
	case errors.Is(err, linux.EAGAIN), errors.Is(err, linux.EACCES):
		return p9.LockStatusBlocked, nil
	}
	return p9.LockStatusError, err
}

func (f *file) setLock(lock *unix.Flock_t) error {
	f.locking.Lock()
	defer f.locking.Unlock()
	if err := f.locker(); err != nil {
		return err
	}
	return control(f.locks, func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, lock) })
}

// locker opens the descriptor that holds all the locks: locks of different descriptors exclude each other, and end with their
// descriptor. Linux's client sends flock, which needs no write access, as an fcntl lock, which does. So locker opens the descriptor
// for writing, if possible.
func (f *file) locker() error {
	if f.locks != nil {
		return nil
	}
	var fd int
	err := f.with(func(own int) (err error) {
		fd, err = unix.Open(self(own), unix.O_RDWR|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case err == nil:
		f.locks = os.NewFile(uintptr(fd), "9p")
	case errors.Is(err, linux.EMFILE), errors.Is(err, linux.ENFILE):
		return err
	default:
		f.locks = f.opened.Load().desc
	}
	return nil
}

// endLocks ends the locks.
func (f *file) endLocks() {
	f.locking.Lock()
	defer f.locking.Unlock()
	if f.locks != nil {
		_ = f.locks.Close()
	}
}

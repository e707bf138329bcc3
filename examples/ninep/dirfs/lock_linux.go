package dirfs

import (
	"errors"
	"io"
	"math"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

// Lock never waits: a client that wants to wait asks again.
func (f *file) Lock(_ int, kind p9.LockType, _ p9.LockFlags, start, length uint64, _ string) (p9.LockStatus, error) {
	if start > math.MaxInt64 || length > math.MaxInt64 || !f.open.Load() {
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
	f.reading.Lock()
	defer f.reading.Unlock()
	err := f.setLock(&lock)
	if errors.Is(err, linux.EBADF) {
		// Linux's client sends flock, which needs no right to write, as a lock of fcntl, which does. The server refuses to write all the same.
		if f.reopen(unix.O_RDWR|unix.O_CLOEXEC) == nil {
			err = f.setLock(&lock)
		}
	}
	switch {
	case err == nil:
		return p9.LockStatusOK, nil
	case errors.Is(err, linux.EAGAIN), errors.Is(err, linux.EACCES):
		return p9.LockStatusBlocked, nil
	}
	return p9.LockStatusError, err
}

func (f *file) setLock(lock *unix.Flock_t) error {
	return f.with(func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, lock) })
}

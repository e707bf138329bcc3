package main

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// identify returns the identity of a file. One whose time of birth is not known has its number alone.
func (f *filesystem) identify(path string) (identity, error) {
	info, err := f.Lstat(path) // which stays in the directory
	if err != nil {
		return identity{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, fs.ErrInvalid
	}
	id := identity{number: st.Ino}
	var x unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, filepath.Join(f.dir, path), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &x)
	if err == nil && x.Ino == st.Ino && x.Mask&unix.STATX_BTIME != 0 {
		id.born = uint64(x.Btime.Sec)*1e9 + uint64(x.Btime.Nsec)
	}
	return id, nil
}

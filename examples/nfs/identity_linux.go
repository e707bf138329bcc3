package main

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// deviceOf is the device that a file is on.
func deviceOf(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Dev) //nolint:unconvert // it is shorter on some processors
}

// errElsewhere is the error for a file that another one may have the number of. A handle cannot tell them apart by the
// device, which has another number when its host is started again.
var errElsewhere = errors.New("it is on another file system")

// identify returns the identity of a file. One whose file system knows neither a time of birth nor a generation has its number
// alone. A file on another file system than the directory has none.
func (f *filesystem) identify(path string) (identity, error) {
	info, err := f.Lstat(path) // which stays in the directory
	if err != nil {
		return identity{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return identity{}, fs.ErrInvalid
	case deviceOf(info) != f.device:
		return identity{}, &fs.PathError{Op: "identify", Path: path, Err: errElsewhere}
	}
	return identity{number: st.Ino, born: born(filepath.Join(f.dir, path), st.Ino)}, nil
}

// lastName tells whether a file is gone when a name of it is.
func lastName(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (info.IsDir() || st.Nlink == 1)
}

// born is what the file of a path has for itself, besides a number that a later one may have too: its time of birth, or where the
// file system keeps none, as ext2, the generation of its number. 0: it has neither, or the path is that of another file by now.
func born(path string, number uint64) uint64 {
	var x unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &x)
	switch {
	case err != nil || x.Ino != number:
		return 0
	case x.Mask&unix.STATX_BTIME != 0:
		return uint64(x.Btime.Sec)*1e9 + uint64(x.Btime.Nsec)
	}
	return generation(path, number)
}

// generation tells a file from those that had its number before; 0: it is not known. It is in the handles that the kernel's own NFS
// server has, for which nothing need be opened.
func generation(path string, number uint64) uint64 {
	const numberAndGeneration = 1 // FILEID_INO32_GEN
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil || h.Type() != numberAndGeneration || h.Size() != 8 {
		return 0
	}
	b := h.Bytes()
	if uint64(binary.NativeEndian.Uint32(b)) != number {
		return 0
	}
	return uint64(binary.NativeEndian.Uint32(b[4:]))
}

package main

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// deviceOf returns the device that a file is on.
func deviceOf(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Dev) //nolint:unconvert // it is shorter on some processors
}

// errElsewhere is the error for a file on another device, whose number may also belong to a file of the directory. A handle
// cannot distinguish them by the device, whose number changes when the host is restarted.
var errElsewhere = errors.New("it is on another file system")

// identify returns the identity of a file. If the file system keeps neither a birth time nor a generation, the identity is only
// the number. A file on another file system than the directory has no identity.
func (f *filesystem) identify(path string) (identity, error) {
	info, err := f.Lstat(path) // Lstat stays in the directory
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

// lastName reports whether a file is gone when one name of it is removed.
func lastName(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (info.IsDir() || st.Nlink == 1)
}

// born returns what distinguishes the file at path from a later one with the same number: its birth time, or, if the file system
// keeps none, like ext2, the generation of its number. It returns 0 if the file has neither, or the path now names another file.
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

// generation returns the number that distinguishes a file from earlier files with its number; 0: unknown. It is in the handles of the
// kernel's own NFS server, which can be obtained without opening the file.
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

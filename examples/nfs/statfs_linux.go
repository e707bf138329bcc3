package main

import (
	"github.com/willscott/go-nfs"
	"golang.org/x/sys/unix"
)

// statfs reports how many octets and files the file system has, and how many are free.
func (f *filesystem) statfs(s *nfs.FSStat) error {
	var st unix.Statfs_t
	if err := unix.Statfs(f.dir, &st); err != nil {
		return err
	}
	size := uint64(st.Bsize)
	s.TotalSize, s.FreeSize, s.AvailableSize = st.Blocks*size, st.Bfree*size, st.Bavail*size
	s.TotalFiles, s.FreeFiles, s.AvailableFiles = st.Files, st.Ffree, st.Ffree
	if f.readOnly {
		s.AvailableSize, s.AvailableFiles = 0, 0
	}
	return nil
}

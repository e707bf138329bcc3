package main

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Chtimes changes the times of a file, or of a link itself: go-nfs has followed no link.
func (f *filesystem) Chtimes(name string, atime, mtime time.Time) error {
	dir, base := filepath.Split(local(name))
	d, err := f.root.Open(local(dir))
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	var times [2]unix.Timespec
	for i, t := range []time.Time{atime, mtime} {
		if times[i], err = unix.TimeToTimespec(t); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(int(d.Fd()), base, times[:], unix.AT_SYMLINK_NOFOLLOW)
}

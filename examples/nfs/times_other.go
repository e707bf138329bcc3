//go:build !linux

package main

import (
	"io/fs"
	"time"
)

// Chtimes changes the times of a file. For a link it changes neither its times nor those of the file that it leads to.
func (f *filesystem) Chtimes(name string, atime, mtime time.Time) error {
	info, err := f.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	return f.root.Chtimes(local(name), atime, mtime)
}

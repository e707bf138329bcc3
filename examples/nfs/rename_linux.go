package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// rename works like rename(2). Rename of os.Root refuses to replace a directory, even an empty one, which is allowed.
func (f *filesystem) rename(from, to string) error {
	fromDir, fromName := filepath.Split(from)
	toDir, toName := filepath.Split(to)
	a, err := f.root.OpenFile(local(fromDir), unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	b, err := f.root.OpenFile(local(toDir), unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	if err := unix.Renameat(int(a.Fd()), fromName, int(b.Fd()), toName); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

package fsync

import (
	"os"

	"golang.org/x/sys/unix"
)

// File makes the contents of a file or directory durable, and all its metadata.
func File(f *os.File) error { return once(f, "fsync", unix.Fsync) }

// Data makes the contents of a file durable, and the metadata that is needed to read them.
func Data(f *os.File) error { return once(f, "fdatasync", unix.Fdatasync) }

func once(f *os.File, op string, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return err
	}
	if result != nil {
		return &os.PathError{Op: op, Path: f.Name(), Err: result}
	}
	return nil
}

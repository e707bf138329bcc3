//go:build !linux

package fsync

import "os"

// File makes durable what is in a file or directory, and all that is known about it.
func File(f *os.File) error { return f.Sync() }

// Data makes durable the contents of a file, and as much of the rest as reading them takes.
func Data(f *os.File) error { return f.Sync() }

//go:build !linux

package fsync

import "os"

// File makes the contents of a file or directory durable, and all its metadata.
func File(f *os.File) error { return f.Sync() }

// Data makes the contents of a file durable, and the metadata that is needed to read them.
func Data(f *os.File) error { return f.Sync() }

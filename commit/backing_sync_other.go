//go:build !linux

package commit

import (
	"os"
	"runtime"
)

func datasync(f *os.File) error { return f.Sync() }

func writeOut(*os.File, Range) {}

func uncache(*os.File) error { return nil }

func grow(f *os.File, size int64) error { return lengthen(f, size) }

func syncDir(path string) error {
	if runtime.GOOS == "windows" { // cannot, and need not
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

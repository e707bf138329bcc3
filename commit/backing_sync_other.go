//go:build !linux

package commit

import (
	"os"
	"runtime"
)

func datasync(sys system, f *os.File) error { return asLoss(sys.fdatasync(f)) }

func writeOut(system, *os.File, Range) error { return nil }

func uncache(system, *os.File) error { return nil }

func grow(sys system, f *os.File, size int64) error { return lengthen(sys, f, size) }

func syncDir(sys system, f *os.File) error {
	if runtime.GOOS == "windows" { // cannot, and need not
		return nil
	}
	return syncName(sys, f)
}

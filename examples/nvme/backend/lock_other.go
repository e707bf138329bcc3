//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package backend

import (
	"errors"
	"os"
	"runtime"
)

// lockFile fails: without a lock two namespaces could share a file, and each of them would
// know only what was written through it.
func lockFile(*os.File) error {
	return errors.New("files cannot be locked on " + runtime.GOOS + ", and so they cannot be back ends")
}

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package backend

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/commit"
)

// lockFile locks f until it is closed, against other processes and against this process, should it
// open the file again.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w: %w", commit.ErrInUse, err)
	}
	if err != nil {
		return fmt.Errorf("the file cannot be locked: %w", err)
	}
	return nil
}

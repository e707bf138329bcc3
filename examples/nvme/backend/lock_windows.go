package backend

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"

	"github.com/goiwarp/iwarp/commit"
)

// lockFile keeps others off f until it is closed. The octet that is locked is beyond the end of
// every file, since the system keeps all others from reading what is locked.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return fmt.Errorf("%w: %w", commit.ErrInUse, err)
	}
	if err != nil {
		return fmt.Errorf("the file cannot be locked: %w", err)
	}
	return nil
}

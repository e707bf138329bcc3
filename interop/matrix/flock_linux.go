package matrix

import (
	"errors"
	"os"
	"syscall"
)

// lockAndUnlock locks and unlocks a whole file.
func lockAndUnlock(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	fd := int(f.Fd())
	return errors.Join(syscall.Flock(fd, syscall.LOCK_EX), syscall.Flock(fd, syscall.LOCK_UN), f.Close())
}

//go:build !linux

package matrix

import "errors"

// lockAndUnlock is for the guest, which has Linux.
func lockAndUnlock(string) error { return errors.ErrUnsupported }

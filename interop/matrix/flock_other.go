//go:build !linux

package matrix

import "errors"

// lockAndUnlock is only for the guest, which runs Linux.
func lockAndUnlock(string) error { return errors.ErrUnsupported }

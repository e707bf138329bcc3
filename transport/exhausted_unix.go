//go:build unix

package transport

import (
	"fmt"
	"math"
	"syscall"
)

// MaxFiles returns how many file descriptors the process may have.
func MaxFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt
	}
	return int(min(uint64(l.Cur), math.MaxInt)) //nolint:unconvert // it is signed on some systems
}

// fileLimit returns the limit as text for an error message.
func fileLimit() string { return fmt.Sprintf(" (RLIMIT_NOFILE is %d)", MaxFiles()) }

//go:build unix

package transport

import (
	"fmt"
	"math"
	"syscall"
)

// MaxFiles is how many file descriptors the process may have.
func MaxFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt
	}
	return int(min(uint64(l.Cur), math.MaxInt)) //nolint:unconvert // it is signed on some systems
}

// fileLimit tells it.
func fileLimit() string { return fmt.Sprintf(" (RLIMIT_NOFILE is %d)", MaxFiles()) }

//go:build unix

package peer

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the processor time of this process.
func CPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0 // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

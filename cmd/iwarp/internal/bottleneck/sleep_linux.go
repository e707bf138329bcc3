package bottleneck

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sleep is more precise than time.Sleep, which may take a millisecond more, but occupies a thread
// meanwhile.
func Sleep(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
		continue
	}
}

package incast

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep is more precise than time.Sleep, which may take a millisecond more, and keeps a thread
// meanwhile.
func sleep(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
		continue
	}
}

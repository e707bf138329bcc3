//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has used since it began, in the program and in the system for it.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

//go:build !windows

package backend

import "syscall"

// errDiskFull is this system's own error of a medium without room.
var errDiskFull error = syscall.ENOSPC

package backend

import "golang.org/x/sys/windows"

// errDiskFull is this system's own error of a medium without room.
var errDiskFull error = windows.ERROR_DISK_FULL

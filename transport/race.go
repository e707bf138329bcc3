//go:build linux && !purego && race

package transport

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raceWrite tells the race detector what a raw writev does: it reads the buffers,
// and it happens before the read(2) that receives them.
func raceWrite(iov []unix.Iovec) {
	for i := range iov {
		runtime.RaceReadRange(unsafe.Pointer(iov[i].Base), int(iov[i].Len))
	}
	// Package syscall keeps the variable by which its Write happens before its Read
	// to itself; a Write that fails releases it all the same.
	_, _ = syscall.Write(-1, nil)
}

//go:build linux && !purego && race

package transport

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// raceWrite reports the effect of a raw writev to the race detector: it reads the buffers,
// and it happens before the read(2) that receives them.
func raceWrite(iov []unix.Iovec) {
	raceorder.Lock()
	defer raceorder.Unlock()
	for i := range iov {
		runtime.RaceReadRange(unsafe.Pointer(iov[i].Base), int(iov[i].Len))
	}
	// Package syscall does not export the variable by which its Write happens before its
	// Read; a Write that fails releases it, too.
	_, _ = syscall.Write(-1, nil)
}

// raceRead reports the effect of a raw readv to the race detector: it writes the first n
// octets of the buffers, and it happens after the write(2) that sent them.
func raceRead(fd uintptr, iov []unix.Iovec, n int) {
	raceorder.Lock()
	defer raceorder.Unlock()
	// A successful Read of package syscall acquires the variable that a Write has
	// released; a Read of no octets always succeeds.
	_, _ = syscall.Read(int(fd), nil)
	for i := range iov {
		k := min(int(iov[i].Len), n)
		if k > 0 {
			runtime.RaceWriteRange(unsafe.Pointer(iov[i].Base), k)
		}
		n -= k
	}
}

// raceReceive reports the effect of a raw recv into p to the race detector.
func raceReceive(fd uintptr, p []byte) {
	if len(p) > 0 {
		iov := unix.Iovec{Base: &p[0]}
		iov.SetLen(len(p))
		raceRead(fd, []unix.Iovec{iov}, len(p))
	}
}

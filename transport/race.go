//go:build linux && !purego && race

package transport

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// raceWrite tells the race detector what a raw writev does: it reads the buffers,
// and it happens before the read(2) that receives them.
func raceWrite(iov []unix.Iovec) {
	raceorder.Lock()
	defer raceorder.Unlock()
	for i := range iov {
		runtime.RaceReadRange(unsafe.Pointer(iov[i].Base), int(iov[i].Len))
	}
	// Package syscall keeps the variable by which its Write happens before its Read
	// to itself; a Write that fails releases it all the same.
	_, _ = syscall.Write(-1, nil)
}

// raceRead tells the race detector what a raw readv does: it writes the first n octets
// of the buffers, and it happens after the write(2) that sent them.
func raceRead(fd uintptr, iov []unix.Iovec, n int) {
	raceorder.Lock()
	defer raceorder.Unlock()
	// A Read of package syscall that succeeds acquires what a Write has released; that
	// of nothing always does.
	_, _ = syscall.Read(int(fd), nil)
	for i := range iov {
		k := min(int(iov[i].Len), n)
		if k > 0 {
			runtime.RaceWriteRange(unsafe.Pointer(iov[i].Base), k)
		}
		n -= k
	}
}

// raceReceive tells the race detector what a raw recv into p does.
func raceReceive(fd uintptr, p []byte) {
	if len(p) > 0 {
		iov := unix.Iovec{Base: &p[0]}
		iov.SetLen(len(p))
		raceRead(fd, []unix.Iovec{iov}, len(p))
	}
}

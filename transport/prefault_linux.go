//go:build linux && !purego

package transport

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var pageSize = uintptr(os.Getpagesize())

// populate is madvise(2) with MADV_POPULATE_READ, which the scheduler is told of. Before
// Linux 5.14 it fails, and so it does where a file has been cut short: the copy that follows
// then finds out by itself.
func populate(page, n uintptr) {
	_, _, _ = syscall.Syscall(unix.SYS_MADVISE, page, n, unix.MADV_POPULATE_READ)
}

// prefault brings payload into memory.
func prefault(payload [][]byte) {
	for _, p := range payload {
		if len(p) == 0 {
			continue
		}
		at := uintptr(unsafe.Pointer(&p[0])) // it does not move: payload is on the heap, or no memory of Go's
		before := at % pageSize
		n := (before + uintptr(len(p)) + pageSize - 1) / pageSize * pageSize
		populate(at-before, n)
		runtime.KeepAlive(p)
	}
}

// Prefault brings payload into memory. The system call that writes it tells the scheduler
// nevertheless: a page may have left the memory again by then.
func (s *rawStream) Prefault(payload [][]byte) {
	s.write.told = true
	prefault(payload)
}

func (s *connStream) Prefault(payload [][]byte) { prefault(payload) }

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

// populate is madvise(2) with MADV_POPULATE_READ, called so that the scheduler knows of it. It
// fails before Linux 5.14, and if a mapped file was truncated; the copy that follows then
// faults itself.
func populate(page, n uintptr) {
	_, _, _ = syscall.Syscall(unix.SYS_MADVISE, page, n, unix.MADV_POPULATE_READ)
}

// prefault loads the pages of payload into memory.
func prefault(payload [][]byte) {
	for _, p := range payload {
		if len(p) == 0 {
			continue
		}
		at := uintptr(unsafe.Pointer(&p[0])) // it does not move: payload is on the heap, or not memory of Go
		before := at % pageSize
		n := (before + uintptr(len(p)) + pageSize - 1) / pageSize * pageSize
		populate(at-before, n)
		runtime.KeepAlive(p)
	}
}

// Prefault loads the pages of payload into memory. The system call that writes payload is also
// made so that the scheduler knows of it, because a page may have been evicted again by then.
func (s *rawStream) Prefault(payload [][]byte) {
	s.write.told = true
	prefault(payload)
}

func (s *connStream) Prefault(payload [][]byte) { prefault(payload) }

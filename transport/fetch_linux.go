//go:build linux && !purego

package transport

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

var pageSize = uintptr(os.Getpagesize())

// populate is madvise(2) with MADV_POPULATE_READ, which the scheduler is told of. Before
// Linux 5.14 it fails; so it does where a file has been cut short. Who then touches the
// page finds out by itself. A test may take its place.
var populate = func(p []byte) { _ = unix.Madvise(p, unix.MADV_POPULATE_READ) }

// fetch brings payload into memory.
func fetch(payload [][]byte) {
	for _, p := range payload {
		if len(p) == 0 {
			continue
		}
		before := uintptr(unsafe.Pointer(&p[0])) % pageSize
		n := (before + uintptr(len(p)) + pageSize - 1) / pageSize * pageSize
		populate(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&p[0]), -int(before))), n))
	}
}

// Fetch has the system call that writes the payload tell the scheduler, too: a page may
// leave the memory again before that.
func (s *rawStream) Fetch(payload [][]byte) {
	s.write.told = true
	fetch(payload)
}

func (s *connStream) Fetch(payload [][]byte) { fetch(payload) }

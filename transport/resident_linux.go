//go:build linux && !purego

package transport

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resident reports whether all of iov is in memory, so that a system call that reads or
// writes it does not wait for a disk. Pieces shorter than a page are not looked at: those
// are headers, of the library's own.
func resident(iov []unix.Iovec) bool {
	var from, to uintptr // pages in a row, not looked at yet
	for i := range iov {
		if uintptr(iov[i].Len) < pageSize {
			continue
		}
		begin := uintptr(unsafe.Pointer(iov[i].Base))
		end := (begin + uintptr(iov[i].Len) + pageSize - 1) &^ (pageSize - 1)
		begin &^= pageSize - 1
		if from <= begin && begin <= to {
			to = max(to, end)
			continue
		}
		if !pagesResident(from, to) {
			return false
		}
		from, to = begin, end
	}
	return pagesResident(from, to)
}

// pagesResident asks for a mebibyte at a time.
func pagesResident(from, to uintptr) bool {
	var pages [256]byte
	for from < to {
		n := min((to-from)/pageSize, uintptr(len(pages)))
		if _, _, e := syscall.RawSyscall(unix.SYS_MINCORE, from, n*pageSize, uintptr(unsafe.Pointer(&pages))); e != 0 {
			return false
		}
		for _, p := range pages[:n] {
			if p&1 == 0 {
				return false
			}
		}
		from += n * pageSize
	}
	return true
}

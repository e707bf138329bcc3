//go:build linux && !purego

package transport

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A residency remembers which memory of one direction of a connection was found to be there.
// Pages that were there a moment ago are there, and to ask the kernel for each batch would
// take a twentieth of the time that the batch takes. One goroutine at a time uses it.
type residency struct {
	from, to uintptr // in memory when it was asked
	until    int64   // by now: then it is asked again
}

// residentTime is how long the answer of the kernel counts.
const residentTime = 10 * time.Millisecond

// covers reports whether all of iov is in memory, so that a system call that reads or
// writes it does not wait for a disk. Pieces shorter than a page are not looked at: those
// are headers, of the library's own.
func (r *residency) covers(iov []unix.Iovec) bool {
	if t := now(); t >= r.until {
		r.from, r.to, r.until = 0, 0, t+int64(residentTime)
	}
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
		if !r.has(from, to) {
			return false
		}
		from, to = begin, end
	}
	return r.has(from, to)
}

// has reports whether the pages are in memory. What it has asked for is remembered together
// with what it knows, if the two meet, and else in place of it.
func (r *residency) has(from, to uintptr) bool {
	switch {
	case from == to || r.from <= from && to <= r.to:
		return true
	case to < r.from || r.to < from:
		r.from, r.to = from, from
	}
	if !ask(from, min(to, r.from)) || !ask(max(from, r.to), to) {
		return false
	}
	r.from, r.to = min(r.from, from), max(r.to, to)
	return true
}

// ask asks the kernel whether the pages are in memory, for a mebibyte at a time.
func ask(from, to uintptr) bool {
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

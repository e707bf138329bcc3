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
	known [4]pages // the buffers that batches are staged in, and some of the user's
	next  int      // of known, to be forgotten first
	until int64    // by now: then all is asked again
}

// pages are those from one address up to another.
type pages struct{ from, to uintptr }

// residentTime is how long the answer of the kernel counts.
const residentTime = 100 * time.Millisecond

// covers reports whether all of iov is in memory, so that a system call that reads or
// writes it does not wait for a disk. Pieces shorter than a page are not looked at: those
// are headers, of the library's own.
func (r *residency) covers(iov []unix.Iovec) bool {
	if t := now(); t >= r.until {
		r.known, r.until = [len(r.known)]pages{}, t+int64(residentTime)
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
// with what it knows, if the two meet, and else in place of what it has learned first.
func (r *residency) has(from, to uintptr) bool {
	if from == to {
		return true
	}
	k := r.find(from, to)
	if k == nil {
		k = &r.known[r.next]
		r.next = (r.next + 1) % len(r.known)
		k.from, k.to = from, from
	}
	if !ask(from, min(to, k.from)) || !ask(max(from, k.to), to) {
		return false
	}
	k.from, k.to = min(k.from, from), max(k.to, to)
	return true
}

// find returns what it knows of pages that meet those from one address up to another.
func (r *residency) find(from, to uintptr) *pages {
	for i := range r.known {
		if k := &r.known[i]; from <= k.to && k.from <= to {
			return k
		}
	}
	return nil
}

// ask asks the kernel whether the pages are in memory, for a mebibyte at a time.
func ask(from, to uintptr) bool {
	var there [256]byte
	for from < to {
		n := min((to-from)/pageSize, uintptr(len(there)))
		if _, _, e := syscall.RawSyscall(unix.SYS_MINCORE, from, n*pageSize, uintptr(unsafe.Pointer(&there))); e != 0 {
			return false
		}
		for _, p := range there[:n] {
			if p&1 == 0 {
				return false
			}
		}
		from += n * pageSize
	}
	return true
}

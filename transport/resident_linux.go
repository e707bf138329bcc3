//go:build linux && !purego

package transport

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A residency caches which pages, used by one direction of a connection, are in memory. Pages
// that were in memory a moment ago are assumed to be there still: asking the kernel for each batch
// would take a twentieth of the time of the batch. Only one goroutine at a time may use it.
type residency struct {
	known [4]pages // enough for the staging buffers of batches and some buffers of the user
	next  int      // index of the entry of known to replace next
	until int64    // when the entries become invalid, in the time of now
}

// pages is the range of pages with addresses from <= a < to.
type pages struct{ from, to uintptr }

// residentTime is how long an answer of the kernel is valid.
const residentTime = 100 * time.Millisecond

// covers reports whether all of iov is in memory, so that a system call that reads or
// writes it does not wait for a disk. Buffers shorter than a page are not checked: they are
// headers, in memory of the library.
func (r *residency) covers(iov []unix.Iovec) bool {
	if t := now(); t >= r.until {
		r.known, r.until = [len(r.known)]pages{}, t+int64(residentTime)
	}
	var from, to uintptr // contiguous pages that are not checked yet
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

// has reports whether the pages are in memory. It adds pages that it has asked the kernel for
// to an entry that they adjoin or overlap, or else replaces the oldest entry.
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

// find returns an entry that adjoins or overlaps the pages from <= a < to, or nil.
func (r *residency) find(from, to uintptr) *pages {
	for i := range r.known {
		if k := &r.known[i]; from <= k.to && k.from <= to {
			return k
		}
	}
	return nil
}

// ask asks the kernel whether the pages are in memory, for one mebibyte per call.
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

package commit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directBlock is the alignment of addresses, offsets and lengths of direct I/O: the largest
// block size of disks.
const directBlock = 4096

// directMost is the number of octets that are moved at once, at most.
const directMost = 1 << 20

// A direct reads and writes past the page cache.
type direct struct {
	sys  system
	f    *os.File
	size int64
	mu   sync.RWMutex // held for writing while blocks are read, changed and written
	pool sync.Pool    // of *[]byte, aligned
}

// openDirect opens the file of o once more.
func openDirect(o *opened) (*direct, error) {
	path := o.f.Name()
	if o.size%directBlock != 0 {
		return nil, fmt.Errorf("commit: %s: direct I/O of %d octets, which is no multiple of %d", path, o.size, directBlock)
	}
	f, err := o.sys.open(path, os.O_RDWR|unix.O_DIRECT)
	if err != nil {
		return nil, fmt.Errorf("commit: direct I/O: %w", err)
	}
	info, err := o.sys.stat(f)
	if err == nil && !sameFile(info, o.claim.file) {
		err = errors.New("another file has taken its place while it was opened")
	}
	if err != nil {
		_ = o.sys.close(f)
		return nil, fmt.Errorf("commit: %s: %w", path, err)
	}
	d := &direct{sys: o.sys, f: f, size: o.size}
	d.pool.New = func() any { return aligned(directMost) }
	return d, nil
}

func aligned(n int) *[]byte {
	b := make([]byte, n+directBlock)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (directBlock - 1)
	b = b[skip : skip+n]
	return &b
}

// readWithin calls read for the part of p that is within size octets, and returns io.EOF if that is not all of p, as
// io.ReaderAt demands: a program that does not know the size still gets the last octets.
func readWithin(size int64, p []byte, off int64, read func(p []byte, off int64) (int, error)) (int, error) {
	within := p[:min(int64(len(p)), max(size-off, 0))]
	n, err := read(within, min(off, size))
	if err == nil && len(within) < len(p) {
		err = io.EOF
	}
	return n, err
}

// readAt reads whole blocks, and copies the requested octets.
func (d *direct) readAt(p []byte, off int64) (n int, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return readWithin(d.size, p, off, func(p []byte, off int64) (int, error) {
		return d.each(p, off, func(block []byte, at int64, p []byte, skip int) error {
			if err := d.fill(block, at); err != nil {
				return err
			}
			copy(p, block[skip:])
			return nil
		})
	})
}

// writeAt writes whole blocks. It preserves the octets of a block that p does not cover.
func (d *direct) writeAt(p []byte, off int64) (n int, err error) {
	if off%directBlock == 0 && len(p)%directBlock == 0 {
		d.mu.RLock()
		defer d.mu.RUnlock()
	} else {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	return d.each(p, off, func(block []byte, at int64, p []byte, skip int) error {
		if len(p) != len(block) {
			if err := d.fill(block, at); err != nil {
				return err
			}
		}
		copy(block[skip:], p)
		_, err := d.sys.writeAt(d.f, block, at)
		return err
	})
}

// blocks returns the whole blocks that contain the n octets at off: a failed write may have changed all of them.
func (d *direct) blocks(off, n int64) (from, size int64) {
	from = off &^ (directBlock - 1)
	return from, (off+n+directBlock-1)&^(directBlock-1) - from
}

func (d *direct) fill(block []byte, at int64) error {
	_, err := d.sys.readAt(d.f, block, at)
	if errors.Is(err, io.EOF) { // another program has truncated the file
		return io.ErrUnexpectedEOF
	}
	return err
}

// each calls f with blocks that each hold a part of p, which begins after skip octets.
func (d *direct) each(p []byte, off int64, f func(block []byte, at int64, p []byte, skip int) error) (n int, err error) {
	if off < 0 || off > d.size || int64(len(p)) > d.size-off {
		return 0, io.ErrUnexpectedEOF
	}
	buf := d.pool.Get().(*[]byte)
	defer d.pool.Put(buf)
	for n < len(p) {
		at := off &^ (directBlock - 1)
		skip := int(off - at)
		m := min(len(p)-n, directMost-skip)
		block := (*buf)[:(skip+m+directBlock-1)&^(directBlock-1)]
		if err := f(block, at, p[n:n+m], skip); err != nil {
			return n, err
		}
		n += m
		off += int64(m)
	}
	return n, nil
}

package commit

import (
	"fmt"
	"io"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directBlock is what addresses, offsets and lengths of direct I/O are multiples of: the
// largest block that disks have.
const directBlock = 4096

// directMost is how much is moved at once.
const directMost = 1 << 20

// A direct reads and writes past the page cache.
type direct struct {
	f    *os.File
	size int64
	mu   sync.RWMutex // written: for blocks that are read, changed and written
	pool sync.Pool    // of *[]byte, aligned
}

func openDirect(path string, size int64) (*direct, error) {
	if size%directBlock != 0 {
		return nil, fmt.Errorf("commit: %s: direct I/O of %d octets, which is no multiple of %d", path, size, directBlock)
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return nil, fmt.Errorf("commit: direct I/O: %w", err)
	}
	d := &direct{f: f, size: size}
	d.pool.New = func() any { return aligned(directMost) }
	return d, nil
}

func aligned(n int) *[]byte {
	b := make([]byte, n+directBlock)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (directBlock - 1)
	b = b[skip : skip+n]
	return &b
}

// readAt reads whole blocks and copies what was asked for.
func (d *direct) readAt(p []byte, off int64) (n int, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.each(p, off, func(block []byte, at int64, p []byte, skip int) error {
		if err := d.fill(block, at); err != nil {
			return err
		}
		copy(p, block[skip:])
		return nil
	})
}

// writeAt writes whole blocks. Of those that p does not fill, it keeps the rest.
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
		_, err := d.f.WriteAt(block, at)
		return err
	})
}

func (d *direct) fill(block []byte, at int64) error {
	_, err := d.f.ReadAt(block, at)
	if err == io.EOF { // some other program has cut the file
		return io.ErrUnexpectedEOF
	}
	return err
}

// each calls f with blocks that hold a part of p each, which begins after skip octets.
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

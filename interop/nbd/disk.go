// Package nbd provides a network block device for the lab: a server for the protocol of QEMU's
// client, and a disk whose power can be cut.
package nbd

import (
	"math/rand/v2"
	"sync"
)

// Sector is the number of octets that a disk writes as a whole or not at all.
const Sector = 512

// A Disk has a volatile cache, like real disks: written octets are certain to be on the
// medium only after a Flush, or if they were written through. Until then each sector may
// or may not have reached the medium, independently and in any order. All methods may
// be called concurrently.
type Disk struct {
	mu     sync.Mutex
	medium []byte
	cache  map[int64][]byte // by the number of the sector
	lot    *rand.Rand
	lying  bool
}

// NewDisk makes a disk from an image, whose length must be a multiple of [Sector]. The disk
// then owns the image. The seed decides what happens to sectors when the power is cut.
func NewDisk(image []byte, seed uint64) *Disk {
	return &Disk{medium: image, cache: make(map[int64][]byte), lot: rand.New(rand.NewPCG(seed, 0))}
}

// Lie makes the disk report success for each Flush without doing anything.
func (d *Disk) Lie() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lying = true
}

// Size returns the size in octets.
func (d *Disk) Size() int64 { return int64(len(d.medium)) }

// ReadAt reads whole sectors within the disk, as they were last written.
func (d *Disk) ReadAt(p []byte, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(p, d.medium[off:])
	for n := int64(0); n < int64(len(p)); n += Sector {
		if s, ok := d.cache[(off+n)/Sector]; ok {
			copy(p[n:], s)
		}
	}
	return nil
}

// WriteAt writes whole sectors within the disk. With through they are on the medium when
// it returns.
func (d *Disk) WriteAt(p []byte, off int64, through bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := int64(0); n < int64(len(p)); n += Sector {
		d.write((off+n)/Sector, p[n:n+Sector], through && !d.lying)
	}
	return nil
}

// write puts a sector into the cache. Its previous contents may have reached the medium
// meanwhile.
func (d *Disk) write(sector int64, p []byte, through bool) {
	old, ok := d.cache[sector]
	switch {
	case through:
		delete(d.cache, sector)
		copy(d.medium[sector*Sector:], p)
		return
	case !ok:
		old = make([]byte, Sector)
		d.cache[sector] = old
	case d.lot.IntN(2) == 0:
		copy(d.medium[sector*Sector:], old)
	}
	copy(old, p)
}

// Flush returns when everything that was written before is on the medium.
func (d *Disk) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lying {
		return nil
	}
	for sector, s := range d.cache {
		copy(d.medium[sector*Sector:], s)
	}
	clear(d.cache)
	return nil
}

// Cut cuts the power: some random sectors of the cache have just reached the medium, and
// the others are lost. The disk continues with the remaining contents. It must not be
// used meanwhile.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for sector, s := range d.cache {
		if d.lot.IntN(2) == 0 {
			copy(d.medium[sector*Sector:], s)
		}
	}
	clear(d.cache)
}

// Package nbd is a network block device for the lab: a server of the protocol that QEMU's
// client speaks, and a disk whose power can be cut.
package nbd

import (
	"math/rand/v2"
	"sync"
)

// Sector is what a disk writes whole or not at all, in octets.
const Sector = 512

// A Disk has a cache that forgets, as disks have: what was written is on the medium for
// certain only when a Flush has followed, or when it was written through. Until then a
// sector may have reached the medium or not, each by itself and in any order. All methods
// may be called at the same time.
type Disk struct {
	mu     sync.Mutex
	medium []byte
	cache  map[int64][]byte // by the number of the sector
	lot    *rand.Rand
	lying  bool
}

// NewDisk makes a disk of an image, whose length is a multiple of [Sector] and which is
// the disk's from now on. The seed is for what becomes of sectors when the power goes.
func NewDisk(image []byte, seed uint64) *Disk {
	return &Disk{medium: image, cache: make(map[int64][]byte), lot: rand.New(rand.NewPCG(seed, 0))}
}

// Lie makes a disk that says of each Flush that it is done, and does nothing.
func (d *Disk) Lie() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lying = true
}

// Size is in octets.
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

// WriteAt writes whole sectors within the disk; through: they are on the medium when
// it returns.
func (d *Disk) WriteAt(p []byte, off int64, through bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := int64(0); n < int64(len(p)); n += Sector {
		d.write((off+n)/Sector, p[n:n+Sector], through && !d.lying)
	}
	return nil
}

// write puts a sector into the cache. What was there before may have reached the
// medium meanwhile.
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

// Cut is the end of the power: of the sectors in the cache some have just reached the
// medium, by lot, and the others are lost. The disk continues with what is left. It
// must not be used meanwhile.
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

package rma

import (
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// blobStep is how many blobs are registered at once, if there is memory for them.
const blobStep = 8

// A blob is memory from which octets are sent, or into which they are read.
type blob struct {
	mem []byte
	sge [1]iwarp.SGE
}

// blobs are those of one connection.
type blobs struct {
	pd      *iwarp.PD
	scratch *scratch
	size    int
	mrs     []*iwarp.MR
	all     []*blob
	free    []int
	taken   int       // octets of scratch
	unsent  int       // that were posted
	moved   time.Time // when the last one was sent, or the first of the unsent ones posted
}

// noBlob is the number of none.
const noBlob = 0

func newBlobs(pd *iwarp.PD, s *scratch, size int) *blobs {
	return &blobs{pd: pd, scratch: s, size: size, all: make([]*blob, 1)}
}

// get returns a blob that nothing uses. Beyond the limit of the memory, or of the regions of the RNIC, there is none, unless it must
// be.
func (b *blobs) get(must bool) (int, error) {
	if len(b.free) == 0 {
		err := b.grow(must)
		if !must && errors.Is(err, iwarp.ErrLimit) {
			err = nil // memory that the RNIC does not register is none
		}
		if err != nil || len(b.free) == 0 {
			return noBlob, err
		}
	}
	i := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	return i, nil
}

func (b *blobs) put(i int) { b.free = append(b.free, i) }

// posted notes that one was posted.
func (b *blobs) posted(now time.Time) {
	if b.unsent == 0 {
		b.moved = now
	}
	b.unsent++
}

// sent takes back one that was posted.
func (b *blobs) sent(now time.Time, i int) {
	b.unsent--
	b.moved = now
	b.put(i)
}

// deadline is when no operation waits any more for what was posted, if it has not been sent.
func (b *blobs) deadline() (time.Time, bool) { return b.moved.Add(maxOpTimeout), b.unsent > 0 }

// idle reports whether nothing uses any of them.
func (b *blobs) idle() bool { return len(b.free) == len(b.all)-1 }

func (b *blobs) grow(must bool) error {
	n := blobStep * b.size
	taken := b.scratch.take(n)
	if !taken {
		n = b.size
		taken = b.scratch.take(n)
	}
	if !taken && !must {
		return nil
	}
	slab := make([]byte, n)
	mr, err := b.pd.RegisterMR(slab, stag.LocalWrite, nil)
	if err != nil {
		if taken {
			b.scratch.give(n)
		}
		return err
	}
	if taken {
		b.taken += n
	}
	b.mrs = append(b.mrs, mr)
	for off := 0; off < n; off += b.size {
		b.free = append(b.free, len(b.all))
		b.all = append(b.all, &blob{mem: slab[off : off+b.size : off+b.size], sge: [1]iwarp.SGE{mr.Slice(off, b.size)}})
	}
	return nil
}

// octets are the first n octets of a blob, for a work request.
func (b *blobs) octets(i, n int) []iwarp.SGE {
	sge := b.all[i].sge[:]
	sge[0].Len = n
	return sge
}

// close gives everything back. Nothing uses it.
func (b *blobs) close() {
	for _, mr := range b.mrs {
		_ = mr.Close()
	}
	b.scratch.give(b.taken)
	b.mrs, b.all, b.free, b.taken = nil, nil, nil, 0
}

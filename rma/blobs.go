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

// blobs are the blobs of one connection.
type blobs struct {
	pd      *iwarp.PD
	scratch *scratch
	size    int
	mrs     []*iwarp.MR
	all     []*blob
	free    []int
	taken   int       // octets of scratch
	unsent  int       // blobs that were posted and not sent
	moved   time.Time // when the last blob was sent, or the first unsent one was posted
}

// noBlob stands for no blob.
const noBlob = 0

func newBlobs(pd *iwarp.PD, s *scratch, size int) *blobs {
	return &blobs{pd: pd, scratch: s, size: size, all: make([]*blob, 1)}
}

// get returns an unused blob, or noBlob if the limit of the memory or of the RNIC's regions is reached. If must is set, the
// limit of the memory does not apply, and that of the RNIC is an error.
func (b *blobs) get(must bool) (int, error) {
	if len(b.free) == 0 {
		err := b.grow(must)
		if !must && errors.Is(err, iwarp.ErrLimit) {
			err = nil // memory that the RNIC does not register counts as missing
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

// posted notes that a blob was posted.
func (b *blobs) posted(now time.Time) {
	if b.unsent == 0 {
		b.moved = now
	}
	b.unsent++
}

// sent takes back a posted blob.
func (b *blobs) sent(now time.Time, i int) {
	b.unsent--
	b.moved = now
	b.put(i)
}

// deadline returns when no operation waits any more for a posted blob that has not been sent.
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

// octets returns the first n octets of a blob, for a work request.
func (b *blobs) octets(i, n int) []iwarp.SGE {
	sge := b.all[i].sge[:]
	sge[0].Len = n
	return sge
}

// close releases all blobs. None is in use.
func (b *blobs) close() {
	for _, mr := range b.mrs {
		_ = mr.Close()
	}
	b.scratch.give(b.taken)
	b.mrs, b.all, b.free, b.taken = nil, nil, nil, 0
}

package stag

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/internal/lockorder"
)

// A Region is a run of octets that an STag names: memory, or a [Buffer]. Regions
// are made by [Table.Register] and [Table.RegisterBuffer], and by preparing and
// enabling a [FastRegion] or a [Window]. All methods may be called from any goroutine.
//
// A Region is VALID from its registration until it is invalidated, and never again
// after that. What it covers, its rights and its scope do not change. A [FastRegion] or
// a [Window] is a sequence of Regions.
type Region struct {
	stag    STag
	access  Access
	scope   Scope
	base    uint64
	size    uint64 // at most 2^63 - 1, and base + size fits in 64 bits
	mem     []byte
	buf     Buffer // nil: the octets are mem
	flush   Flusher
	watch   Watch
	dirty   func(off, n int64)
	through func(off, n int64)
	failed  func(off, n int64, err error)

	// Of a region whose STag can be enabled repeatedly; else nil and 0.
	entry *entry
	turn  uint64

	state   atomic.Uint64                     // see state.go
	mu      lockorder.Mutex[lockorder.Region] // guards what follows, once the table has the region, and the change to INVALID
	drained chan struct{}                     // closed when pins or holds are gone; nil: no goroutine waits
	windows int                               // bound to this region
	on      *Region                           // of a bound window: the region that it is bound to,
	in      *Windows                          // and the set that contains it
}

// STag returns the name of the region on the wire.
func (r *Region) STag() STag { return r.stag }

// Access returns the rights given at registration.
func (r *Region) Access() Access { return r.access }

// BaseTO returns the tagged offset of the first octet.
func (r *Region) BaseTO() uint64 { return r.base }

// IsWindow reports whether the region is a part of another, covered by a [Window].
func (r *Region) IsWindow() bool { return r.entry != nil && r.entry.window }

// PeersMayWrite reports whether a peer may write to the octets: because the region
// grants it, or because windows that grant it may be bound to the region.
func (r *Region) PeersMayWrite() bool {
	return r.access&(RemoteWrite|RemoteAtomic) != 0 || r.access.allows(MWBind|LocalWrite)
}

// Len returns the number of octets.
func (r *Region) Len() uint64 { return r.size }

// Scope returns who may use the region.
func (r *Region) Scope() Scope { return r.scope }

// Flusher returns the Flusher that makes octets of the region durable, or nil if there is none.
func (r *Region) Flusher() Flusher { return r.flush }

// Bytes returns the n octets at off, shared with the region and valid while the
// caller has a pin or a hold. It is nil if the octets are not memory or are not all
// within the region.
func (r *Region) Bytes(off uint64, n int) []byte {
	if r.buf != nil || !r.contains(off, n) {
		return nil
	}
	end := off + uint64(n)
	return r.mem[off:end:end]
}

// Place copies p to the octets at off; the caller has a pin, so that the copy
// cannot outlive the region's validity. Place does not retain p. The error is
// [ErrBounds], with nothing placed, or that of the Buffer, after which the octets
// are indeterminate.
func (r *Region) Place(off uint64, p []byte) error {
	if !r.contains(off, len(p)) {
		return ErrBounds
	}
	if len(p) == 0 {
		return nil
	}
	err := r.place(off, p)
	r.writeThrough(off, len(p))
	return err
}

// place is Place for octets within the region, without Through.
func (r *Region) place(off uint64, p []byte) error {
	if r.buf == nil {
		began := r.Began()
		blockcopy.Copy(r.mem[off:], p)
		return r.wrote(began, off, len(p), nil)
	}
	return r.placeBy(r.write, off, p)
}

// placeBy places the octets of p in the Buffer by write.
func (r *Region) placeBy(write func(p []byte, off uint64) error, off uint64, p []byte) error {
	began := r.Began()
	// A failed write may have changed any of the octets.
	if err := r.wrote(began, off, len(p), write(p, off)); err != nil {
		return fmt.Errorf("stag: placing into the buffer of %v: %w", r.stag, err)
	}
	return nil
}

// PlaceWrite is Place for a peer's RDMA Write, which has no response. A failure of the
// Buffer is reported to Options.Failed, if there is one, and is then not an error unless
// the Buffer, or Options.Failed, has panicked.
func (r *Region) PlaceWrite(off uint64, p []byte) error {
	err := r.Place(off, p)
	if err == nil || r.failed == nil || errors.Is(err, ErrBounds) {
		return err
	}
	told := r.tellFailed(off, len(p), err)
	if _, ok := errors.AsType[*PanicError](err); ok {
		return err
	}
	return told
}

// Began must be called, under a pin, before octets are written other than by Place.
func (r *Region) Began() uint64 {
	if r.watch == nil {
		return 0
	}
	return r.watch.Began()
}

// MarkWritten reports that the n octets at off were written other than by Place, under
// a pin. began is the result of Began. If Options.Dirty panics, the write has failed for the
// Watch.
func (r *Region) MarkWritten(began, off uint64, n int) {
	_ = r.wrote(began, off, n, nil)
	r.writeThrough(off, n)
}

// wrote calls the Flusher first: a successful Flush may lack octets that the Flusher does not know of, and these
// would no longer count as written. It returns err, the error of the write, or the panic of the Flusher, from which
// the Watch learns that such a Flush must not succeed.
func (r *Region) wrote(began, off uint64, n int, err error) error {
	if r.dirty != nil {
		if told := r.tellDirty(off, n); err == nil {
			err = told
		}
	}
	if r.watch != nil {
		r.watch.Wrote(began, int64(off), int64(n), err)
	}
	return err
}

func (r *Region) writeThrough(off uint64, n int) {
	if r.through != nil {
		r.through(int64(off), int64(n))
	}
}

// ReadInto fills p with the octets at off; the caller has a pin or a hold. It fills
// all of p or fails: with [ErrBounds], with the error of the Buffer, or with
// [io.ErrUnexpectedEOF] if the Buffer has become shorter than it was.
func (r *Region) ReadInto(p []byte, off uint64) error {
	if !r.contains(off, len(p)) {
		return ErrBounds
	}
	if r.buf == nil {
		blockcopy.Copy(p, r.mem[off:])
		return nil
	}
	if len(p) == 0 {
		return nil
	}
	n, err := r.readBuffer(p, off)
	if n == len(p) {
		return nil // io.ReaderAt may report io.EOF with the last octets
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("stag: reading from the buffer of %v: %w", r.stag, err)
}

// contains reports whether the n octets at off lie within the region.
func (r *Region) contains(off uint64, n int) bool {
	return n >= 0 && off <= r.size && uint64(n) <= r.size-off
}

package backend

import (
	"context"
	"fmt"
)

// A Backend is the medium of one namespace (NVM Express Base 2.0, NVM Command Set 1.0). Offsets and
// lengths are in octets, and must be multiples of the block size; others fail with [ErrUnaligned], and
// ranges outside the size with [ErrOutOfRange], without changing the medium. An operation of zero
// octets is checked like any other, and does nothing.
//
// All methods may be called concurrently, from any goroutine. An operation that has begun on the
// medium does not end when ctx does: ctx is checked before, and between the parts of a long
// operation. When an operation returns, the Backend no longer uses its buffer.
//
// Errors are of type [*Error].
type Backend interface {
	// Size returns the number of octets, a multiple of BlockSize. It does not change while the
	// Backend is open.
	Size() int64

	// BlockSize returns the number of octets of a logical block: a power of two from 512 to 4096.
	BlockSize() int

	// ReadOnly reports whether all operations that would change the medium fail with
	// [ErrReadOnly].
	ReadOnly() bool

	// ReadAt fills p with the octets at off. After an error the contents of p are undefined.
	// The kinds of errors are ErrRead, ErrOutOfRange, ErrUnaligned and ErrClosed. For a Read with
	// FUA, call Flush first, which costs nothing if nothing was written since the last one.
	ReadAt(ctx context.Context, p []byte, off int64) error

	// WriteAt writes p at off. If fua is set, the octets are durable when it returns nil (Force
	// Unit Access); earlier writes need not be. The Backend does not change p. After an error each
	// block has its old or its new contents.
	WriteAt(ctx context.Context, p []byte, off int64, fua bool) error

	// WriteZeroes makes n octets at off zeros (NVM Command Set 1.0, section 3.2.8). If unmap is
	// set, their space may be freed (DEAC); otherwise allocated space stays allocated. Large
	// ranges are processed in parts, with other operations in between.
	WriteZeroes(ctx context.Context, off, n int64, unmap, fua bool) error

	// Trim frees the space of n octets at off (Dataset Management, Deallocate). They are zeros
	// from then on, unless [Traits.KeepsTrimmed] is set. Blocks of the medium that are only partly
	// within the range stay allocated, and their part within the range becomes zeros.
	Trim(ctx context.Context, off, n int64) error

	// Flush makes everything durable that was completed before it was called. The kinds of
	// errors are ErrSync, ErrFailed and ErrClosed. If ctx ends first, Flush may return the error
	// of ctx, and the written octets may become durable later. Without a volatile cache it
	// returns at once.
	Flush(ctx context.Context) error

	// Volatile reports whether there is a cache whose contents a power cut destroys. If not, every
	// write is durable when it returns. The result never changes.
	Volatile() bool

	// Close waits for running operations, without a Flush, and releases the medium. All later
	// operations fail with [ErrClosed].
	Close() error
}

// Traits are further properties of a Backend, for Identify Namespace and ONCS (NVM Express Base 2.0).
type Traits struct {
	// Trims reports that Trim frees space. If not, it writes zeros, which takes as long as
	// writing; a target may then omit Dataset Management from ONCS.
	Trims bool

	// KeepsTrimmed reports that trimmed octets may still have their old contents: DLFEAT is then
	// 0. Of the back ends here, only a block device with the option discard does that.
	KeepsTrimmed bool

	// Immediate reports that reads and writes of few octets take no longer than copying them: they do not wait for a medium.
	// A target then need not pass them to another goroutine.
	Immediate bool

	// Granularity is the number of octets of which writes and trims should be multiples, a
	// multiple of the block size (NPWG, NPDG).
	Granularity int
}

// Describe returns the traits of b: what its method Traits returns, if it has one.
func Describe(b Backend) Traits {
	if d, ok := b.(interface{ Traits() Traits }); ok {
		return d.Traits()
	}
	return Traits{Granularity: b.BlockSize()}
}

// geometry is the shape of a Backend.
type geometry struct {
	size     int64
	block    int
	readOnly bool
}

// The sizes that a logical block may have.
const (
	minBlock     = 512
	maxBlock     = 4096
	defaultBlock = 4096
)

// newGeometry checks the shape of a Backend, and rounds its size down to whole blocks.
func newGeometry(size int64, block int, readOnly bool) (geometry, error) {
	if block < minBlock || block > maxBlock || block&(block-1) != 0 {
		return geometry{}, fmt.Errorf("backend: a block of %d octets is no power of two from %d to %d", block, minBlock, maxBlock)
	}
	if size < int64(block) {
		return geometry{}, fmt.Errorf("backend: %d octets are less than one block of %d", size, block)
	}
	return geometry{size &^ (int64(block) - 1), block, readOnly}, nil
}

// Size implements [Backend].
func (g *geometry) Size() int64 { return g.size }

// BlockSize implements [Backend].
func (g *geometry) BlockSize() int { return g.block }

// ReadOnly implements [Backend].
func (g *geometry) ReadOnly() bool { return g.readOnly }

// check returns why n octets at off cannot be read, or, if changes is set, be changed.
func (g *geometry) check(op Op, off, n int64, changes bool) error {
	mask := int64(g.block) - 1
	switch {
	case off < 0 || n < 0 || off > g.size || n > g.size-off:
		return &Error{Kind: ErrOutOfRange, Op: op, Off: off, Len: n}
	case (off|n)&mask != 0:
		return &Error{Kind: ErrUnaligned, Op: op, Off: off, Len: n}
	case changes && g.readOnly:
		return &Error{Kind: ErrReadOnly, Op: op, Off: off, Len: n}
	}
	return nil
}

package stag

import (
	"context"
	"fmt"
	"io"
)

// An STag names a region to the peer: a 24-bit index, chosen unpredictably, and
// an 8-bit key (RFC 5040 section 8.1.1 (8)). All 32 bits are checked on every
// access. Zero is never handed out.
type STag uint32

// Index returns the upper 24 bits.
func (s STag) Index() uint32 { return uint32(s) >> 8 }

// Key returns the lower 8 bits.
func (s STag) Key() uint8 { return uint8(s) }

// String returns all eight hexadecimal digits.
func (s STag) String() string { return fmt.Sprintf("%#08x", uint32(s)) }

// A Buffer is a run of octets that is not memory: a file, a device, something
// computed. ReadAt and WriteAt may be called at the same time from several
// goroutines, and WriteAt in any order (RFC 5041 section 5.3).
type Buffer interface {
	io.ReaderAt
	io.WriterAt
	Size() int64
}

// A MemoryBuffer is a Buffer whose octets are in memory that may be used only at certain times: for example
// under a lock. Payload is copied directly to and from that memory. Payload that is sent from any other
// Buffer is copied once more, and its CRC is computed in a separate pass.
type MemoryBuffer interface {
	Buffer
	// Acquire returns the memory of the n octets at off: the caller writes to all of them if write is set, and
	// otherwise only reads them. n is at least 1. The same goroutine calls Release next, without waiting or calling
	// another method, so a lock may be held until then. An error counts like one of ReadAt or WriteAt. If both results
	// are nil, ReadAt or WriteAt is called instead, without Release; both must work at any time, for atomic operations.
	Acquire(off int64, n int, write bool) ([]byte, error)
	// Release ends the use of what Acquire has returned for the same arguments.
	Release(off int64, n int, write bool)
}

// An AtomicBuffer is a Buffer that can say that it stores eight octets at once.
type AtomicBuffer interface {
	Buffer
	// Atomic reports whether a WriteAt of [AtomicLen] octets at a multiple of AtomicLen is
	// atomic: a ReadAt at the same time returns all of them or none, and so does one after a
	// power cut. The result never changes.
	Atomic() bool
}

// A Flusher makes a range durable: when Flush returns nil, octets [off, off+n)
// survive a power cut. It may be called from several goroutines. It must not end its goroutine
// ([runtime.Goexit]), which may be the one that receives.
//
// An implementation must follow these rules:
//   - nil is a promise for all octets of the range that were written before the call, by
//     any writer.
//   - An error after which octets may be lost, like the pages of a file whose sync has failed, is an
//     errno, such as EIO or any other except EROFS, EINTR, EAGAIN and ENOMEM, or a *commit.Error
//     with the code DataLost or Vendor. A sync of a file may fail with any errno, even those four, and
//     must not be called again: pass its error on as DataLost. Flush is then not called again for
//     those octets, nor for any that were written to the region and not made durable before: they
//     are lost until a peer, or a local work request, has written them again
//     ([github.com/goiwarp/iwarp/commit.Latch]). Stores by which local code rewrites them are not
//     noticed.
//   - After any other error the octets are where they were, and another Flush may
//     succeed.
//   - Losses are recorded for each region separately. A Flusher of several regions of the same
//     octets must report a loss to all of them.
//
// If several calls for one region run at the same time, a success counts when all calls that began before it
// have ended, and not for octets that one of those has lost. So no call may wait until the success of another call has
// been reported, and a call that does not return holds up all later ones. An error without a loss is reported only for
// its own call: a call that leaves octets to another call must wait until that returns, and return its error.
type Flusher interface {
	Flush(ctx context.Context, off, n int64) error
}

// A Watch is called for everything that is written to a region, within the pin of each placement.
// It may be called from several goroutines.
type Watch interface {
	// Began is called before a placement. Its result is passed to Wrote.
	Began() uint64
	// Wrote is called after the placement of n octets at off, with the error of the Buffer.
	Wrote(began uint64, off, n int64, err error)
}

// A Scope says who may use an STag. PD and Stream are identities assigned by the layer
// above; they never appear on the wire. For a region, Stream 0 means every stream of the
// PD; the identity of a stream itself is never 0.
type Scope struct {
	PD     uint64
	Stream uint64
}

// admits reports whether a region of scope s may be used by user: it belongs to the
// same PD and, if it is bound to one stream, to that stream (RFC 5040 section
// 8.1.1 (1) and (2)).
func (s Scope) admits(user Scope) bool {
	return s.PD == user.PD && (s.Stream == 0 || s.Stream == user.Stream)
}

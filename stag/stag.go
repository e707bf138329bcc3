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

// String writes all eight hexadecimal digits.
func (s STag) String() string { return fmt.Sprintf("%#08x", uint32(s)) }

// A Buffer is a run of octets that is not memory: a file, a device, something
// computed. ReadAt and WriteAt may be called at the same time from several
// goroutines, and WriteAt in any order (RFC 5041 section 5.3).
type Buffer interface {
	io.ReaderAt
	io.WriterAt
	Size() int64
}

// A MemoryBuffer is a Buffer whose octets are in memory, but not free to be used at any time: it holds a
// lock meanwhile, or counts what was moved. Payload is copied straight to and from that memory, where that of another
// Buffer that is sent is copied once more, and is digested in a pass of its own.
type MemoryBuffer interface {
	Buffer
	// Acquire returns the n octets at off themselves: the caller writes to all of them if write is set, and
	// only reads them otherwise. n is at least 1. The same goroutine calls Release next, without a wait, and no other method
	// before: so a lock may be held until then. An error is as one of ReadAt or WriteAt. If both are nil, ReadAt or
	// WriteAt is called instead, and not Release. Both of those must work at any time: atomic operations use them.
	Acquire(off int64, n int, write bool) ([]byte, error)
	// Release ends the use of what Acquire has returned for the same arguments.
	Release(off int64, n int, write bool)
}

// An AtomicBuffer is a Buffer that can say that it stores eight octets at once.
type AtomicBuffer interface {
	Buffer
	// Atomic reports whether a WriteAt of [AtomicLen] octets at a multiple of AtomicLen is
	// atomic: a ReadAt at the same time gets all of them or none, and so does one after a power
	// cut. It is always the same.
	Atomic() bool
}

// A Flusher makes a range durable: when Flush returns nil, octets [off, off+n)
// survive a power cut. It may be called from several goroutines, none of which it may end
// ([runtime.Goexit]): it may be the one that receives.
//
// What an implementer owes:
//   - nil is a promise for all octets of the range that were written before the call, by
//     any writer.
//   - An error after which octets may be gone from where they were, as the pages of a file are
//     whose sync has failed, is an errno, such as EIO or any other but EROFS, EINTR, EAGAIN and
//     ENOMEM, or a *commit.Error with the code DataLost or Vendor. A sync of a file may fail with any
//     errno, those four too, and is not to be called again: its error is passed on as DataLost.
//     The Flusher is then not asked for those octets again, nor for any that were written to
//     the region and not made durable before: they are lost until a peer, or a local work
//     request, has written them again ([github.com/goiwarp/iwarp/commit.Latch]). Local code
//     that rewrites them with stores of its own is not seen.
//   - After any other error the octets are where they were, and another Flush may
//     succeed.
//   - That memory is one for each region. A Flusher that is given to several regions of the
//     same octets tells all of them.
//
// Where several calls for one region run at the same time, a success counts when all that began before it
// have ended, and not for what one of those has lost. So no call may wait for what another Flush of the region
// is to tell, and one that does not return holds up all later ones. An error without a loss is told for its own
// call alone: one that leaves octets to another call waits for that, and returns its error.
type Flusher interface {
	Flush(ctx context.Context, off, n int64) error
}

// A Watch is told of all that is written to a region, within the pin of each placement. It
// may be called from several goroutines.
type Watch interface {
	// Began is called before a placement. What it returns comes back with Wrote.
	Began() uint64
	// Wrote is called after the placement of n octets at off, with the error of the Buffer.
	Wrote(began uint64, off, n int64, err error)
}

// A Scope says who may use an STag. PD and Stream are identities given out by the
// layer above; they never appear on the wire. Of a region, Stream 0 means every
// stream of the PD; a stream itself always has an identity other than 0.
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

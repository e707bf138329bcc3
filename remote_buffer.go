package iwarp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/stag"
)

// A RemoteBuffer identifies memory of the peer. The owner of the memory makes it with
// [MR.Advertise], and the application sends it to the other side. The zero value identifies no
// memory; it is valid where no octets are moved.
//
// One RemoteBuffer covers less than 4 GiB. A larger region needs several, which
// [MR.AdvertiseRange] returns. They differ only in TO and Len, so a program may also compute
// them: octet n of a region is at TO+n under the same STag.
type RemoteBuffer struct {
	STag stag.STag
	TO   uint64
	Len  uint32
}

// remoteBufferLen is the length of the wire format: be32 STag, be64 TO, be32 length.
const remoteBufferLen = 16

// AppendBinary appends the encoding of rb in 16 octets that the library's own protocols use:
// STag (4), TO (8), length (4), big endian. It never fails.
func (rb RemoteBuffer) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, uint32(rb.STag))
	b = binary.BigEndian.AppendUint64(b, rb.TO)
	return binary.BigEndian.AppendUint32(b, rb.Len), nil
}

// UnmarshalBinary decodes the encoding of AppendBinary. b must have exactly 16 octets.
func (rb *RemoteBuffer) UnmarshalBinary(b []byte) error {
	if len(b) != remoteBufferLen {
		return fmt.Errorf("iwarp: a RemoteBuffer has %d octets, got %d", remoteBufferLen, len(b))
	}
	rb.STag = stag.STag(binary.BigEndian.Uint32(b))
	rb.TO = binary.BigEndian.Uint64(b[4:])
	rb.Len = binary.BigEndian.Uint32(b[12:])
	return nil
}

// Slice returns the n octets of rb from off, with the same STag. It returns the zero
// RemoteBuffer if they are not all within rb; posting an operation that moves octets then
// fails with ErrBounds. A Commit of it succeeds, like that of any empty region, and makes
// nothing durable: a program that computes off and n must compare the result with the zero value.
func (rb RemoteBuffer) Slice(off, n int) RemoteBuffer {
	if off < 0 || n < 0 || uint64(off)+uint64(n) > uint64(rb.Len) {
		return RemoteBuffer{}
	}
	return RemoteBuffer{STag: rb.STag, TO: rb.TO + uint64(off), Len: uint32(n)}
}

// AdvertisePiece is the length of the RemoteBuffers that [MR.AdvertiseRange] returns, except
// the last. It is 2 GiB, so that all of them begin at a multiple of every page and block size.
const AdvertisePiece = 1 << 31

// advertiseRange implements [MR.AdvertiseRange] for the region r.
func advertiseRange(r *stag.Region, off, n int) ([]RemoteBuffer, error) {
	if !contains(r, off, n) {
		return nil, fmt.Errorf("%w: %d octets from %d of %d", ErrBounds, n, off, r.Len())
	}
	rest := RemoteBuffer{STag: r.STag(), TO: r.BaseTO() + uint64(off)}
	left := uint64(n)
	var pieces []RemoteBuffer
	for left > AdvertisePiece {
		pieces = append(pieces, RemoteBuffer{STag: rest.STag, TO: rest.TO, Len: AdvertisePiece})
		rest.TO += AdvertisePiece
		left -= AdvertisePiece
	}
	rest.Len = uint32(left)
	return append(pieces, rest), nil
}

func advertise(r *stag.Region, off, n int) RemoteBuffer {
	if !contains(r, off, n) || uint64(n) > math.MaxUint32 {
		return RemoteBuffer{}
	}
	return RemoteBuffer{STag: r.STag(), TO: r.BaseTO() + uint64(off), Len: uint32(n)}
}

// contains reports whether the n octets at off lie within the region.
func contains(r *stag.Region, off, n int) bool {
	size := r.Len()
	return off >= 0 && n >= 0 && uint64(off) <= size && uint64(n) <= size-uint64(off)
}

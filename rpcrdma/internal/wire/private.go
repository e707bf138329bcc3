package wire

import "encoding/binary"

const (
	privateMagic   = 0xf6ab0e18
	privateVersion = 1
	privateLen     = 8

	// Unit is that of the sizes.
	Unit = 1024
	// MaxInline is the largest size that private data can tell.
	MaxInline = 256 * Unit
)

// A Private is what a side tells of itself when the connection is set up (RFC 8797).
type Private struct {
	Invalidate bool // it supports Send with Invalidate: a client takes it, and a server may send it
	Send       int  // octets that it sends in one message, at most
	Receive    int  // octets that it takes
}

// defaultPrivate is that of a side that tells nothing.
var defaultPrivate = Private{Send: Unit, Receive: Unit}

// ParsePrivate reads private data. If it is not such, or of another version, the result is what goes for a peer
// that does not know of it.
func ParsePrivate(b []byte) Private {
	if len(b) < privateLen || binary.BigEndian.Uint32(b) != privateMagic || b[4] != privateVersion {
		return defaultPrivate
	}
	return Private{Invalidate: b[5]&1 != 0, Send: (int(b[6]) + 1) * Unit, Receive: (int(b[7]) + 1) * Unit}
}

// Append appends private data. The sizes are multiples of Unit.
func (p Private) Append(b []byte) []byte {
	b = appendWords(b, privateMagic)
	flags := byte(0)
	if p.Invalidate {
		flags = 1
	}
	return append(b, privateVersion, flags, byte(p.Send/Unit-1), byte(p.Receive/Unit-1))
}

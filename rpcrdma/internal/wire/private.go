package wire

import "bytes"

const (
	privateVersion = 1
	privateLen     = 8

	// Unit is the unit of the sizes.
	Unit = 1024
	// MaxInline is the largest size that private data can express.
	MaxInline = 256 * Unit
)

var privateMagic = []byte{0xf6, 0xab, 0x0e, 0x18}

// A Private describes a side when the connection is set up (RFC 8797).
type Private struct {
	Invalidate bool // it supports Send with Invalidate: a client takes it, and a server may send it
	Send       int  // octets that it sends in one message, at most
	Receive    int  // octets that it takes in one message, at most
}

// defaultPrivate is assumed for a side without private data.
var defaultPrivate = Private{Send: Unit, Receive: Unit}

// ParsePrivate reads private data. Another layer may have put octets in front of it: it begins where the magic is
// (RFC 8797 section 5.2). If there is none, or it is of another version, the result is the default for a peer without private data.
func ParsePrivate(b []byte) Private {
	at := bytes.Index(b, privateMagic)
	if at < 0 || len(b)-at < privateLen || b[at+4] != privateVersion {
		return defaultPrivate
	}
	b = b[at:]
	return Private{Invalidate: b[5]&1 != 0, Send: (int(b[6]) + 1) * Unit, Receive: (int(b[7]) + 1) * Unit}
}

// Append appends private data. The sizes are multiples of Unit.
func (p Private) Append(b []byte) []byte {
	b = append(b, privateMagic...)
	flags := byte(0)
	if p.Invalidate {
		flags = 1
	}
	return append(b, privateVersion, flags, byte(p.Send/Unit-1), byte(p.Receive/Unit-1))
}

package wiretest

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
	"github.com/goiwarp/iwarp/transport"
)

// Segments that a Peer sends: see package octets.
var (
	FPDU         = octets.FPDU
	Marked       = octets.Marked
	Tagged       = octets.Tagged
	Untagged     = octets.Untagged
	Write        = octets.Write
	Send         = octets.Send
	ReadRequest  = octets.ReadRequest
	ReadResponse = octets.ReadResponse
)

// Opcodes of RDMAP (RFC 5040 section 4.1, RFC 7306 section 4).
const (
	opTerminate = 7
)

// A TerminateScope says which parts of the segment in error a Terminate contains (RFC 5040 section 4.8).
type TerminateScope uint8

const (
	DDPHeader  TerminateScope = iota // the segment's length and DDP header
	ReadHeader                       // and the header of the Read Request
	NoHeader
)

// Terminate returns the segment that answers the segment bad.
func Terminate(code transport.Code, scope TerminateScope, bad []byte) []byte {
	b := Untagged(0x41, 0x47, 0, 2, 1, 0, "")
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	if scope == NoHeader {
		return append(b, 0, 0)
	}
	b = append(b, 0xc0, 0)
	n := 18
	if bad[0]&0x80 != 0 {
		n = 14
	}
	if scope == ReadHeader {
		b[len(b)-2] |= 0x20
		n += 28
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(bad)))
	return append(b, bad[:n]...)
}

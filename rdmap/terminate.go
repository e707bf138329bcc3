package rdmap

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

// maxTerminate is the longest Terminate header: everything present, and the
// terminated DDP header untagged.
const maxTerminate = 4 + 2 + ddp.UntaggedLen + ReadRequestLen

// A Terminate is the last message of a stream. It gives the reason for the end (RFC 5040
// section 4.8):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Layer | EType |   Error Code  |M|D|R|        Reserved         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   DDP Segment Length  (16)    |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	//               Terminated DDP Header (14 or 18)              //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	//               Terminated RDMA Header (28)                   //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// M, D and R say whether the length, the DDP header and the RDMA header are present. There is
// no padding between the headers.
type Terminate struct {
	Code       transport.Code
	SegmentLen int    // length of the segment in error, -1 if not given
	DDPHeader  []byte // of the segment in error: 14 or 18 octets, or nil
	RDMAHeader []byte // of the Read Request in error: 28 octets, or nil
}

// The third octet of Terminate Control.
const (
	hasLength = 0x80 // M
	hasDDP    = 0x40 // D
	hasRDMA   = 0x20 // R
)

// Append appends the Terminate header to b: 4 to 52 octets. It includes the length if and only
// if it includes a DDP header, as RFC 5040 section 4.8 requires.
func (t Terminate) Append(b []byte) []byte {
	var present uint8
	if t.DDPHeader != nil {
		present = hasLength | hasDDP
	}
	if t.RDMAHeader != nil {
		present |= hasRDMA
	}
	b = binary.BigEndian.AppendUint16(b, uint16(t.Code))
	b = append(b, present, 0)
	if t.DDPHeader != nil {
		b = binary.BigEndian.AppendUint16(b, uint16(t.SegmentLen))
		b = append(b, t.DDPHeader...)
	}
	return append(b, t.RDMAHeader...)
}

// ParseTerminate parses a Terminate header; b is the whole message, and the result shares its
// memory. It is tolerant, because the stream ends in any case: a header counts as absent if M, D
// or R announce it but the message is too short, or if they do not announce it. Linux siw writes
// the first octets in another order, and network cards send codes of their own, which are
// recognized. ParseTerminate returns a [transport.Fault] if b has fewer than 4 octets.
func ParseTerminate(b []byte) (Terminate, error) {
	if len(b) < 4 {
		return Terminate{}, transport.Faultf(transport.RDMAPStreamCatastrophic, "Terminate of %d octets", len(b))
	}
	code, present := parseControl(b)
	t := Terminate{Code: assignedFor(code), SegmentLen: -1}
	rest := b[4:]
	if present&(hasLength|hasDDP) != 0 {
		if len(rest) < 2 {
			return t, nil
		}
		if present&hasLength != 0 {
			t.SegmentLen = int(binary.BigEndian.Uint16(rest))
		}
		rest = rest[2:]
	}
	if present&hasDDP != 0 {
		n := terminatedLen(rest)
		if len(rest) < n {
			return t, nil
		}
		t.DDPHeader, rest = rest[:n:n], rest[n:]
	}
	if present&hasRDMA != 0 && len(rest) >= ReadRequestLen {
		t.RDMAHeader = rest[:ReadRequestLen:ReadRequestLen]
	}
	return t, nil
}

// terminatedLen returns the length of the terminated DDP header at the start of b. It depends on
// the T bit of that header; the layer and the type of the error do not determine it.
func terminatedLen(b []byte) int {
	if ddp.IsTagged(b) {
		return ddp.TaggedLen
	}
	return ddp.UntaggedLen
}

// parseControl parses Terminate Control. siw declares it as C bit fields, which on a
// little-endian host puts EType above Layer in the first octet, and M, D and R into the
// lowest bits of the third octet, in the opposite order: 12 05 c0 00 becomes 21 05 03 00.
// These bits are reserved, so they are used only if a header follows. If none follows, the
// order is the one in which the code is assigned.
func parseControl(b []byte) (transport.Code, uint8) {
	code := transport.Code(binary.BigEndian.Uint16(b))
	present := b[2] & (hasLength | hasDDP | hasRDMA)
	if present != 0 {
		return code, present
	}
	swapped := transport.MakeCode(code.Type(), code.Layer(), code.Code())
	if len(b) > 4 {
		if siw := siwPresent(b[2]); siw != 0 {
			return swapped, siw
		}
	}
	if !assigned(code) && assigned(swapped) {
		return swapped, 0
	}
	return code, 0
}

// assignedFor returns the assigned code instead of which drivers of network cards are known to send c,
// a code that no RFC defines. The drivers of Chelsio (cxgb3, cxgb4, iw_cxgbe) give the errors of MPA
// the type 3. The driver of Intel's newer cards (irdma) reports an STag whose index or key is wrong as
// an error of type 2, for which RFC 5040 does not define this code. Any other c is returned unchanged.
func assignedFor(c transport.Code) transport.Code {
	if c == transport.MakeCode(transport.LayerRDMAP, 2, transport.RDMAPInvalidSTag.Code()) {
		return transport.RDMAPInvalidSTag
	}
	if mpa := transport.MakeCode(transport.LayerLLP, 0, c.Code()); c.Layer() == transport.LayerLLP && c.Type() == 3 && mpa.Assigned() {
		return mpa
	}
	return c
}

func siwPresent(b uint8) (present uint8) {
	if b&0x01 != 0 {
		present |= hasLength
	}
	if b&0x02 != 0 {
		present |= hasDDP
	}
	if b&0x04 != 0 {
		present |= hasRDMA
	}
	return present
}

// assigned reports whether c is in the registries of RFC 6580 section 3, which allow any code for a local catastrophic
// error of RDMAP.
func assigned(c transport.Code) bool { return uint16(c)>>8 == 0 || c.Assigned() }

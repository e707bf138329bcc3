package ddp

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Header lengths, in octets (RFC 5041 sections 4.2 and 4.3).
const (
	TaggedLen   = 14
	UntaggedLen = 18
)

// The control octet of every segment (RFC 5041 section 4.1):
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	| T | L |     Rsvd      |  DV   |
//	+---+---+---+---+---+---+---+---+
//
// Rsvd is sent as zero and ignored on receipt.
const (
	controlTagged  = 0x80
	controlLast    = 0x40
	controlVersion = 0x03

	version = 1 // the only DDP version
)

// A QN names an untagged queue of the sink. RDMAP uses 0 to 3.
type QN uint32

// A TaggedHeader starts a segment for a tagged buffer (RFC 5041 section 4.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |T|L| Rsvd  |DV |    RsvdULP    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              STag                             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                               TO                              +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type TaggedHeader struct {
	Last    bool  // L: the message ends with this segment
	RsvdULP uint8 // for the upper layer, carried unchanged
	STag    stag.STag
	TO      uint64 // tagged offset of the first octet of this payload
}

// Append appends the 14 octets of the header to b.
func (h TaggedHeader) Append(b []byte) []byte {
	b = append(b, control(controlTagged, h.Last), h.RsvdULP)
	b = binary.BigEndian.AppendUint32(b, uint32(h.STag))
	return binary.BigEndian.AppendUint64(b, h.TO)
}

// putWhole stores the header of a whole message, in few stores, like the putWhole of an
// [UntaggedHeader].
func (h *TaggedHeader) putWhole(b *[UntaggedLen]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(control(controlTagged, true))<<56|uint64(h.RsvdULP)<<48|uint64(h.STag)<<16|h.TO>>48)
	binary.BigEndian.PutUint32(b[8:], uint32(h.TO>>16))
	binary.BigEndian.PutUint16(b[12:], uint16(h.TO))
}

// ParseTagged reads the header at the start of a segment for which [IsTagged] is
// true. The payload is b[TaggedLen:]. The error, a [transport.Fault], says that b is
// too short. ParseTagged does not check the version: see [Version].
func ParseTagged(b []byte) (h TaggedHeader, err error) {
	err = h.parse(b)
	return h, err
}

// parse is ParseTagged in place: it is called for every segment.
func (h *TaggedHeader) parse(b []byte) error {
	if len(b) < TaggedLen {
		return tooShort(b, TaggedLen)
	}
	h.Last = b[0]&controlLast != 0
	h.RsvdULP = b[1]
	h.STag = stag.STag(binary.BigEndian.Uint32(b[2:]))
	h.TO = binary.BigEndian.Uint64(b[6:])
	return nil
}

// An UntaggedHeader starts a segment for an untagged buffer (RFC 5041 section 4.3):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |T|L| Rsvd  |DV | RsvdULP[0:7]  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         RsvdULP[8:39]                         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                               QN                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              MSN                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                               MO                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type UntaggedHeader struct {
	Last        bool   // L: the message ends with this segment
	RsvdULP     uint8  // for the upper layer, bits 0 to 7
	RsvdULPWord uint32 // for the upper layer, bits 8 to 39
	QN          QN
	MSN         MSN
	MO          uint32 // offset of this payload within the message
}

// Append appends the 18 octets of the header to b.
func (h UntaggedHeader) Append(b []byte) []byte {
	b = append(b, control(0, h.Last), h.RsvdULP)
	b = binary.BigEndian.AppendUint32(b, h.RsvdULPWord)
	b = binary.BigEndian.AppendUint32(b, uint32(h.QN))
	b = binary.BigEndian.AppendUint32(b, uint32(h.MSN))
	return binary.BigEndian.AppendUint32(b, h.MO)
}

// putWhole stores the header of a whole message, in few stores: the header is read again at
// once, and loading what was just stored in pieces of other sizes stalls the processor.
func (h *UntaggedHeader) putWhole(b *[UntaggedLen]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(control(0, true))<<56|uint64(h.RsvdULP)<<48|uint64(h.RsvdULPWord)<<16|uint64(h.QN)>>16)
	binary.BigEndian.PutUint64(b[8:], uint64(h.QN)<<48|uint64(h.MSN)<<16)
	binary.BigEndian.PutUint16(b[16:], 0)
}

// ParseUntagged reads the header at the start of a segment for which [IsTagged] is
// false. The payload is b[UntaggedLen:]. Errors are like those of [ParseTagged].
func ParseUntagged(b []byte) (h UntaggedHeader, err error) {
	err = h.parse(b)
	return h, err
}

// fields returns *h, copied field by field: copying as a whole what was just written in
// pieces stalls the processor.
func (h *UntaggedHeader) fields() UntaggedHeader {
	return UntaggedHeader{h.Last, h.RsvdULP, h.RsvdULPWord, h.QN, h.MSN, h.MO}
}

// parse is ParseUntagged in place: it is called for every segment.
func (h *UntaggedHeader) parse(b []byte) error {
	if len(b) < UntaggedLen {
		return tooShort(b, UntaggedLen)
	}
	h.Last = b[0]&controlLast != 0
	h.RsvdULP = b[1]
	h.RsvdULPWord = binary.BigEndian.Uint32(b[2:])
	h.QN = QN(binary.BigEndian.Uint32(b[6:]))
	h.MSN = MSN(binary.BigEndian.Uint32(b[10:]))
	h.MO = binary.BigEndian.Uint32(b[14:])
	return nil
}

// IsTagged reports the T bit of the segment b; false if b is empty.
func IsTagged(b []byte) bool { return len(b) > 0 && b[0]&controlTagged != 0 }

// Version returns the DV field of the segment b, which must be 1; 0 if b is empty.
func Version(b []byte) uint8 {
	if len(b) == 0 {
		return 0
	}
	return b[0] & controlVersion
}

func control(c uint8, last bool) uint8 {
	if last {
		c |= controlLast
	}
	return c | version
}

// tooShort returns a local catastrophic error, because RFC 5041 has no code for a
// segment that ends within its header.
func tooShort(b []byte, want int) error {
	return transport.Faultf(transport.DDPLocalCatastrophic,
		"segment of %d octets is shorter than its header of %d", len(b), want)
}

package octets

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/stag"
)

// Tagged builds a tagged segment (RFC 5041 section 4.2).
func Tagged(control, rdmap byte, st stag.STag, to uint64, payload string) []byte {
	b := []byte{control, rdmap}
	b = binary.BigEndian.AppendUint32(b, uint32(st))
	b = binary.BigEndian.AppendUint64(b, to)
	return append(b, payload...)
}

// Untagged builds an untagged segment (RFC 5041 section 4.3).
func Untagged(control, rdmap byte, word, qn, msn, mo uint32, payload string) []byte {
	b := []byte{control, rdmap}
	for _, x := range []uint32{word, qn, msn, mo} {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return append(b, payload...)
}

// Write returns the last segment of an RDMA Write.
func Write(st stag.STag, to uint64, payload string) []byte {
	return Tagged(0xc1, 0x40, st, to, payload)
}

// Send returns the last segment of a Send.
func Send(msn, mo uint32, payload string) []byte {
	return Untagged(0x41, 0x43, 0, 0, msn, mo, payload)
}

// ReadRequest returns a Read Request (RFC 5040 section 4.4).
func ReadRequest(msn uint32, sink stag.STag, sinkTO uint64, size uint32, src stag.STag, srcTO uint64) []byte {
	b := Untagged(0x41, 0x41, 0, 1, msn, 0, "")
	b = binary.BigEndian.AppendUint32(b, uint32(sink))
	b = binary.BigEndian.AppendUint64(b, sinkTO)
	b = binary.BigEndian.AppendUint32(b, size)
	b = binary.BigEndian.AppendUint32(b, uint32(src))
	return binary.BigEndian.AppendUint64(b, srcTO)
}

// ReadResponse returns a segment of a Read Response.
func ReadResponse(control byte, st stag.STag, to uint64, payload string) []byte {
	return Tagged(control, 0x42, st, to, payload)
}

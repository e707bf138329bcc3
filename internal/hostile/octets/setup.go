package octets

import "encoding/binary"

// The keys of the MPA Request and Reply (RFC 5044 section 7.1.1).
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Request is a Request of the flags and the revision, with private data and their length.
func Request(flags, revision byte, private []byte) []byte {
	b := append([]byte(RequestKey), flags, revision)
	b = binary.BigEndian.AppendUint16(b, uint16(len(private)))
	return append(b, private...)
}

package octets

import "encoding/binary"

// The keys of the MPA Request and Reply (RFC 5044 section 7.1.1).
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Request returns a Request with the flags and the revision, and with private data and its length.
func Request(flags, revision byte, private []byte) []byte {
	b := append([]byte(RequestKey), flags, revision)
	b = binary.BigEndian.AppendUint16(b, uint16(len(private)))
	return append(b, private...)
}

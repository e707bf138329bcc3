package rdmap

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/transport"
)

// ReadRequestLen is the length of a Read Request header, in octets.
const ReadRequestLen = 28

// A ReadRequest is the header of an RDMA Read Request (RFC 5040 section 4.4):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     Data Sink STag (SinkSTag)                 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                  Data Sink Tagged Offset (SinkTO)             +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                RDMA Read Message Size (RDMARDSZ)              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     Data Source STag (SrcSTag)                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                 Data Source Tagged Offset (SrcTO)             +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ReadRequest struct {
	Sink RemoteAddr // of the requester: echoed in the Response
	Size uint32
	Src  RemoteAddr // of the responder
}

// Append appends the 28 octets of the header to b.
func (h ReadRequest) Append(b []byte) []byte {
	b = h.Sink.append(b)
	b = binary.BigEndian.AppendUint32(b, h.Size)
	return h.Src.append(b)
}

// ParseReadRequest parses the header; b is the whole message. It returns a
// [transport.Fault] if b has another length.
func ParseReadRequest(b []byte) (ReadRequest, error) {
	if len(b) != ReadRequestLen {
		return ReadRequest{}, transport.Faultf(transport.RDMAPStreamCatastrophic,
			"Read Request of %d octets", len(b))
	}
	return ReadRequest{
		Sink: parseRemoteAddr(b),
		Size: binary.BigEndian.Uint32(b[12:]),
		Src:  parseRemoteAddr(b[16:]),
	}, nil
}

// after returns the header for the rest of a Read of which n octets were answered, as a
// Terminate reports it (RFC 5040 section 4.8).
func (h ReadRequest) after(n uint64) ReadRequest {
	h.Sink.TO += n
	h.Src.TO += n
	h.Size -= uint32(n)
	return h
}

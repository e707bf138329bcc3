package commit

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// The opcodes (draft-talpey-rdma-commit-00 table 1).
const (
	OpRequest  rdmap.Opcode = 0xc
	OpResponse rdmap.Opcode = 0xd
)

// The lengths of the parts of the messages, in octets.
const (
	requestIDLen = 4
	regionLen    = 16
	followOnLen  = 20
	ResponseLen  = 8
)

// A Region is one run of octets to be made durable. An empty Region requests nothing, and its
// STag and TO are ignored.
type Region struct {
	STag stag.STag
	TO   uint64
	Len  uint32
}

// A Request is a Commit Request (draft section 3.2.1):
//
//	 0            4                     4+16n                      4+16n+20
//	+------------+-- n x 16 octets ----+------------+------------+-------------+
//	| Request ID | STag | Length | TO  | STag (32)  |  TO (64)   | Value (64)  |
//	+------------+---------------------+------------+------------+-------------+
//
// with at least one region. The part after the regions is present if the length says so. Length
// comes before TO, unlike in a Read Request.
type Request struct {
	ID      uint32 // chosen by the requester, echoed in the response
	Regions []Region
	// A follow-on is a 64-bit integer, Value, that is stored at At after all regions have
	// become durable, and then made durable itself, before the response. If the commit
	// failed it is not stored. At is aligned to eight octets; its Len is not on the wire. A
	// peer stores the integer in the byte order of its host.
	HasFollowOn bool
	At          Region
	Value       uint64
}

// MaxRequestLen returns the largest length of a request with this number of regions.
func MaxRequestLen(regions int) int { return requestIDLen + regions*regionLen + followOnLen }

// Append appends the header to b.
func (r *Request) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, r.ID)
	for _, g := range r.Regions {
		b = g.Append(b)
	}
	if r.HasFollowOn {
		b = AppendFollowOn(b, r.At, r.Value)
	}
	return b
}

// Append appends the 16 octets of the region to b.
func (g Region) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(g.STag))
	b = binary.BigEndian.AppendUint32(b, g.Len)
	return binary.BigEndian.AppendUint64(b, g.TO)
}

// AppendFollowOn appends the 20 octets of a follow-on to b.
func AppendFollowOn(b []byte, at Region, value uint64) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(at.STag))
	b = binary.BigEndian.AppendUint64(b, at.TO)
	return binary.BigEndian.AppendUint64(b, value)
}

// Parse reads the header; b is the whole message. Parse reuses the memory of r.Regions. Its
// fault says that no request has this length.
func (r *Request) Parse(b []byte) *transport.Fault {
	*r = Request{Regions: r.Regions[:0]}
	n := len(b) - requestIDLen
	r.HasFollowOn = n%regionLen == followOnLen%regionLen
	if r.HasFollowOn {
		n -= followOnLen
	}
	if n < regionLen || n%regionLen != 0 {
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "Commit Request of %d octets", len(b))
	}
	r.ID = binary.BigEndian.Uint32(b)
	b = b[requestIDLen:]
	for range n / regionLen {
		r.Regions = append(r.Regions, Region{
			STag: stag.STag(binary.BigEndian.Uint32(b)),
			Len:  binary.BigEndian.Uint32(b[4:]),
			TO:   binary.BigEndian.Uint64(b[8:]),
		})
		b = b[regionLen:]
	}
	if r.HasFollowOn {
		r.At = Region{STag: stag.STag(binary.BigEndian.Uint32(b)), TO: binary.BigEndian.Uint64(b[4:])}
		r.Value = binary.BigEndian.Uint64(b[12:])
	}
	return nil
}

// Total returns the number of octets of all regions, counting overlaps twice. It cannot
// overflow: no message has 2^32 regions.
func (r *Request) Total() (n uint64) {
	for _, g := range r.Regions {
		n += uint64(g.Len)
	}
	return n
}

// A Response is a Commit Response (draft section 3.2.2).
type Response struct {
	ID     uint32 // of the request
	Status Status
}

// Append appends the header to b.
func (r Response) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, r.ID)
	return binary.BigEndian.AppendUint32(b, uint32(r.Status))
}

// ParseResponse reads the header; b is the whole message. The error is a
// [transport.Fault], which says that b has a wrong length.
func ParseResponse(b []byte) (Response, error) {
	if len(b) != ResponseLen {
		return Response{}, transport.Faultf(transport.RDMAPStreamCatastrophic, "Commit Response of %d octets", len(b))
	}
	return Response{ID: binary.BigEndian.Uint32(b), Status: Status(binary.BigEndian.Uint32(b[4:]))}, nil
}

package rdmap

import (
	"encoding/binary"
	"math"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// The lengths of the headers of atomic operations, in octets. RFC 7306 section 4 gives 32
// for the response, which includes the headers in front of it; figure 6 shows 12.
const (
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
)

// An AtomicOp says which atomic operation an [AtomicRequest] requests (RFC 7306
// figure 5).
type AtomicOp uint8

// The atomic operations. An unconditional swap is a CompareSwap that compares no bit.
const (
	FetchAdd    AtomicOp = 0
	CompareSwap AtomicOp = 2
)

// An AtomicRequest is the header of an Atomic Request (RFC 7306 section 5.2.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Reserved (Not Used)              |AOpCode|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Request Identifier                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          Remote STag                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                  Remote Tagged Offset  (64)                   |
//	|                    Add or Swap Data    (64)                   |
//	|                    Add or Swap Mask    (64)                   |
//	|                      Compare Data      (64)                   |
//	|                      Compare Mask      (64)                   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AtomicRequest struct {
	Op   AtomicOp
	ID   uint32 // of the requester: echoed in the response
	At   RemoteAddr
	Data uint64 // FetchAdd: the value to add; CompareSwap: the new value

	// FetchAdd: the top bit of each field, from which no carry is propagated; 0: one field
	// of 64 bits. CompareSwap: the bits that are replaced.
	Mask uint64

	// CompareSwap: the bits to compare, and the values that they must have. In a FetchAdd
	// they are sent as zero and all ones, and are ignored.
	Compare, CompareMask uint64
}

// Append appends the 52 octets of the header to b.
func (h AtomicRequest) Append(b []byte) []byte {
	if h.Op == FetchAdd {
		h.Compare, h.CompareMask = 0, math.MaxUint64
	}
	b = binary.BigEndian.AppendUint32(b, uint32(h.Op))
	b = binary.BigEndian.AppendUint32(b, h.ID)
	b = h.At.append(b)
	b = binary.BigEndian.AppendUint64(b, h.Data)
	b = binary.BigEndian.AppendUint64(b, h.Mask)
	b = binary.BigEndian.AppendUint64(b, h.Compare)
	return binary.BigEndian.AppendUint64(b, h.CompareMask)
}

// identify sets the ID of the header in b to the number of its message.
func identify(b []byte, msn ddp.MSN) { binary.BigEndian.PutUint32(b[4:], uint32(msn)) }

// ParseAtomicRequest parses the header; b is the whole message. It returns a
// [transport.Fault] if b has another length, or if the operation is unknown.
func ParseAtomicRequest(b []byte) (AtomicRequest, error) {
	if len(b) != AtomicRequestLen {
		return AtomicRequest{}, transport.Faultf(transport.RDMAPStreamCatastrophic,
			"Atomic Request of %d octets", len(b))
	}
	op := AtomicOp(b[3] & 0x0f)
	if op != FetchAdd && op != CompareSwap {
		return AtomicRequest{}, transport.Faultf(transport.RDMAPOpcode, "atomic operation %d", op)
	}
	return AtomicRequest{
		Op:          op,
		ID:          binary.BigEndian.Uint32(b[4:]),
		At:          parseRemoteAddr(b[8:]),
		Data:        binary.BigEndian.Uint64(b[20:]),
		Mask:        binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}, nil
}

// Apply returns the result of the operation on the value v.
func (h AtomicRequest) Apply(v uint64) uint64 {
	if h.Op == FetchAdd {
		// Without their top bits the fields cannot carry into each other. A top bit is the
		// sum of its two bits and of the carry.
		return (v&^h.Mask + h.Data&^h.Mask) ^ (v^h.Data)&h.Mask
	}
	if (h.Compare^v)&h.CompareMask != 0 {
		return v
	}
	return v&^h.Mask | h.Data&h.Mask
}

// An AtomicResponse is the header of an Atomic Response (RFC 7306 section 5.2.2).
type AtomicResponse struct {
	ID  uint32 // of the request
	Old uint64 // the value before
}

// Append appends the 12 octets of the header to b.
func (h AtomicResponse) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.ID)
	return binary.BigEndian.AppendUint64(b, h.Old)
}

// ParseAtomicResponse parses the header; b is the whole message. It returns a
// [transport.Fault] if b has another length.
func ParseAtomicResponse(b []byte) (AtomicResponse, error) {
	if len(b) != AtomicResponseLen {
		return AtomicResponse{}, transport.Faultf(transport.RDMAPStreamCatastrophic,
			"Atomic Response of %d octets", len(b))
	}
	return AtomicResponse{ID: binary.BigEndian.Uint32(b), Old: binary.BigEndian.Uint64(b[4:])}, nil
}

// acceptAtomic processes the response to r.
func (r *Request) acceptAtomic(b []byte) error {
	h, err := ParseAtomicResponse(b)
	if err != nil {
		return err
	}
	if h.ID != uint32(r.msn) {
		return transport.Faultf(transport.RDMAPStreamCatastrophic,
			"Atomic Response to request %d, expected that to %d", h.ID, r.msn)
	}
	r.Old = h.Old
	return nil
}

// acceptAtomic checks an Atomic Request and queues its response. The operation is performed
// when the response is made, after the responses to all earlier requests (RFC 7306 section 7).
func (s *Stream) acceptAtomic(in *Inbound) error {
	h, err := ParseAtomicRequest(in.Payload())
	if err != nil {
		return err
	}
	r, _, fault := s.target(h)
	if fault != nil {
		return fault
	}
	r.Unpin()
	in.state = inboundAnswered
	s.enqueue(in)
	return nil
}

// target finds and pins the region that an Atomic Request operates on.
func (s *Stream) target(h AtomicRequest) (r *stag.Region, off uint64, fault *transport.Fault) {
	r, off, v := s.config.Table.Pin(s.config.Scope, h.At.STag, stag.RemoteAtomic, h.At.TO, stag.AtomicLen)
	switch {
	case v != stag.None:
		return nil, 0, transport.Faultf(ProtectionCode(v), "%v: atomic operation on %v at TO %#x", v, h.At.STag, h.At.TO)
	case !r.Aligned(off):
		r.Unpin()
		return nil, 0, transport.Faultf(transport.RDMAPStreamCatastrophic,
			"atomic operation on %v at TO %#x, which is not aligned", h.At.STag, h.At.TO)
	}
	return r, off, nil
}

// openAtomicResponse performs the operation and makes its response the current message.
func (s *Stream) openAtomicResponse(in *Inbound) error {
	h, err := ParseAtomicRequest(in.Payload()) // succeeds as in acceptAtomic
	if err != nil {
		return in.refuse(asFault(transport.RDMAPStreamCatastrophic, err))
	}
	r, off, fault := s.target(h)
	if fault != nil {
		return in.refuse(fault)
	}
	old, err := s.config.Table.Update(r, off, h.Apply)
	r.Unpin()
	if err != nil {
		return in.refuse(asFault(transport.RDMAPStreamCatastrophic, err))
	}
	f := &s.fill
	f.wire = AtomicResponse{ID: h.ID, Old: old}.Append(f.wire[:0])
	s.openReply(OpAtomicResponse, f.wire)
	return nil
}

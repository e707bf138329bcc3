package capsule

import "encoding/binary"

// SQHDDisabled is the SQHD of each response on a queue whose host disabled SQ flow control.
const SQHDDisabled = 0xFFFF

// A CQE is a completion queue entry (Base 2.0, 3.3.3.2): a response.
//
//	 0  DW0 | 4 DW1: the result, which depends on the command
//	 8  SQHD, 16 bits | 10 SQID, 16 bits
//	12  CID, 16 bits | 14 status, 16 bits: phase 0 | SC 8:1 | SCT 11:9 | CRD 13:12 | More 14 | DNR 15
type CQE struct {
	DW0, DW1 uint32
	SQHD     uint16
	SQID     uint16
	CID      uint16
	Status   Status
}

// ParseCQE reads a response. A message with a length other than 16 octets is not a response, and the host closes
// the connection. The phase bit is ignored.
func ParseCQE(msg []byte) (CQE, error) {
	if len(msg) != CQESize {
		return CQE{}, errCQESize
	}
	return CQE{
		DW0:    binary.LittleEndian.Uint32(msg[0:]),
		DW1:    binary.LittleEndian.Uint32(msg[4:]),
		SQHD:   binary.LittleEndian.Uint16(msg[8:]),
		SQID:   binary.LittleEndian.Uint16(msg[10:]),
		CID:    binary.LittleEndian.Uint16(msg[12:]),
		Status: statusOf(binary.LittleEndian.Uint16(msg[14:])),
	}, nil
}

var errCQESize = malformed("a response of another length than %d octets", CQESize)

// Put writes the 16 octets of the response to b, which must be long enough.
func (r *CQE) Put(b []byte) {
	_ = b[CQESize-1]
	binary.LittleEndian.PutUint32(b[0:], r.DW0)
	binary.LittleEndian.PutUint32(b[4:], r.DW1)
	binary.LittleEndian.PutUint16(b[8:], r.SQHD)
	binary.LittleEndian.PutUint16(b[10:], r.SQID)
	binary.LittleEndian.PutUint16(b[12:], r.CID)
	binary.LittleEndian.PutUint16(b[14:], r.Status.wire())
}

// Append appends the 16 octets of the response.
func (r *CQE) Append(dst []byte) []byte {
	var b [CQESize]byte
	r.Put(b[:])
	return append(dst, b[:]...)
}

// Value returns DW1 and DW0 as one number: the value of a property.
func (r *CQE) Value() uint64 { return uint64(r.DW1)<<32 | uint64(r.DW0) }

// SetValue stores the value of a property.
func (r *CQE) SetValue(v uint64) { r.DW0, r.DW1 = uint32(v), uint32(v>>32) }

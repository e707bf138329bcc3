package capsule

import "encoding/binary"

// Lengths of private data, in octets (RDMA transport 1.0, 3.3). They do not include the 4 octets with IRD and ORD
// that MPA puts in front of it (RFC 6581).
const (
	PrivateSize = 32
	RejectSize  = 4
)

// A Request is the private data of the MPA Request.
//
//	0 RECFMT, 16 bits, 0 | 2 QID, 16 bits | 4 HRQSIZE, 16 bits | 6 HSQSIZE, 16 bits | 8 CNTLID, 16 bits | 10 zero[22]
type Request struct {
	QID     uint16 // 0: the admin queue
	HRQSize uint16 // receives of the host
	HSQSize uint16 // 0's based, as Linux uses it: commands outstanding, less 1
	CNTLID  uint16 // of I/O queues, from Linux 6.12 on; 0: not given
}

// ParseRequest reads the private data of an MPA Request. The status is RejectLength or RejectRecFmt, or 0.
// Octets after the first 32 are ignored.
func ParseRequest(b []byte) (Request, RejectStatus) {
	if len(b) < PrivateSize {
		return Request{}, RejectLength
	}
	if binary.LittleEndian.Uint16(b) != 0 {
		return Request{}, RejectRecFmt
	}
	return Request{
		QID:     binary.LittleEndian.Uint16(b[2:]),
		HRQSize: binary.LittleEndian.Uint16(b[4:]),
		HSQSize: binary.LittleEndian.Uint16(b[6:]),
		CNTLID:  binary.LittleEndian.Uint16(b[8:]),
	}, 0
}

// Check checks the sizes and the number of the queue: a QID of at most maxQID, an HSQSIZE of 1 to maxAdmin on the
// admin queue and of 1 to maxIO on others, and an HRQSIZE that is not below HSQSIZE. The status is
// RejectQID, RejectHSQSize or RejectHRQSize, or 0. The target checks whether CNTLID exists.
func (r Request) Check(maxQID, maxAdmin, maxIO uint16) RejectStatus {
	most := maxIO
	if r.QID == 0 {
		most = maxAdmin
	}
	switch {
	case r.QID > maxQID:
		return RejectQID
	case r.HSQSize == 0 || r.HSQSize > most:
		return RejectHSQSize
	case r.HRQSize < r.HSQSize:
		return RejectHRQSize
	}
	return 0
}

// Append appends the 32 octets of the Request.
func (r Request) Append(dst []byte) []byte {
	var b [PrivateSize]byte
	binary.LittleEndian.PutUint16(b[2:], r.QID)
	binary.LittleEndian.PutUint16(b[4:], r.HRQSize)
	binary.LittleEndian.PutUint16(b[6:], r.HSQSize)
	binary.LittleEndian.PutUint16(b[8:], r.CNTLID)
	return append(dst, b[:]...)
}

// An Accept is the private data of an MPA Reply that accepts.
//
//	0 RECFMT, 16 bits, 0 | 2 CRQSIZE, 16 bits | 4 zero[28]
type Accept struct {
	CRQSize uint16 // receives that the target has posted: the commands that may be outstanding
}

// ParseAccept reads the private data of an MPA Reply that accepts. Fewer than 32 octets, an unknown RECFMT, and
// a CRQSIZE of 0 are errors.
func ParseAccept(b []byte) (Accept, error) {
	if len(b) < PrivateSize {
		return Accept{}, malformed("private data of %d octets in the Reply, where %d are needed", len(b), PrivateSize)
	}
	if f := binary.LittleEndian.Uint16(b); f != 0 {
		return Accept{}, malformed("RECFMT %d in the Reply", f)
	}
	a := Accept{CRQSize: binary.LittleEndian.Uint16(b[2:])}
	if a.CRQSize == 0 {
		return Accept{}, malformed("CRQSIZE 0 in the Reply")
	}
	return a, nil
}

// Append appends the 32 octets of the Accept.
func (a Accept) Append(dst []byte) []byte {
	var b [PrivateSize]byte
	binary.LittleEndian.PutUint16(b[2:], a.CRQSize)
	return append(dst, b[:]...)
}

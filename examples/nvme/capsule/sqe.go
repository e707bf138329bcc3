package capsule

import "encoding/binary"

// Lengths of the entries with which capsules begin, in octets.
const (
	SQESize = 64
	CQESize = 16
)

// The second octet of an SQE: PSDT in bits 7:6 and FUSE in bits 1:0.
const (
	FlagSGL = 0x40 // PSDT 01b: SGLs for the data, none for metadata; FUSE 0

	flagsPSDT = 0xC0
)

// An SQE is a submission queue entry (Base 2.0, 3.3.3.1): a command.
//
//	 0  opcode | 1 flags: PSDT 7:6, FUSE 1:0 | 2 CID
//	 4  NSID; of Fabrics commands: 4 fctype | 5 reserved[3]
//	 8  CDW2
//	12  CDW3
//	16  MPTR, 64 bits
//	24  SGL descriptor, 16 octets
//	40  CDW10 | 44 CDW11 | 48 CDW12 | 52 CDW13 | 56 CDW14 | 60 CDW15
type SQE struct {
	Opcode     Opcode
	Flags      uint8
	CID        uint16 // chosen by the host: all 16 bits are returned unchanged
	NSID       uint32
	CDW2, CDW3 uint32
	MPTR       uint64
	SGL        SGL
	CDW10      uint32
	CDW11      uint32
	CDW12      uint32
	CDW13      uint32
	CDW14      uint32
	CDW15      uint32
}

// ParseSQE splits a message into the command and the octets after it, which remain part of msg. A message shorter
// than 64 octets is not a command: it has no CID to answer, and the target closes the connection.
func ParseSQE(msg []byte) (SQE, []byte, error) {
	if len(msg) < SQESize {
		return SQE{}, nil, errShortSQE
	}
	b := msg[:SQESize]
	c := SQE{
		Opcode: Opcode(b[0]),
		Flags:  b[1],
		CID:    binary.LittleEndian.Uint16(b[2:]),
		NSID:   binary.LittleEndian.Uint32(b[4:]),
		CDW2:   binary.LittleEndian.Uint32(b[8:]),
		CDW3:   binary.LittleEndian.Uint32(b[12:]),
		MPTR:   binary.LittleEndian.Uint64(b[16:]),
		SGL:    SGL(b[24:40]),
		CDW10:  binary.LittleEndian.Uint32(b[40:]),
		CDW11:  binary.LittleEndian.Uint32(b[44:]),
		CDW12:  binary.LittleEndian.Uint32(b[48:]),
		CDW13:  binary.LittleEndian.Uint32(b[52:]),
		CDW14:  binary.LittleEndian.Uint32(b[56:]),
		CDW15:  binary.LittleEndian.Uint32(b[60:]),
	}
	return c, msg[SQESize:], nil
}

var errShortSQE = malformed("a command shorter than %d octets", SQESize)

// Put writes the 64 octets of the command to b, which must be long enough.
func (c *SQE) Put(b []byte) {
	_ = b[SQESize-1]
	b[0] = byte(c.Opcode)
	b[1] = c.Flags
	binary.LittleEndian.PutUint16(b[2:], c.CID)
	binary.LittleEndian.PutUint32(b[4:], c.NSID)
	binary.LittleEndian.PutUint32(b[8:], c.CDW2)
	binary.LittleEndian.PutUint32(b[12:], c.CDW3)
	binary.LittleEndian.PutUint64(b[16:], c.MPTR)
	copy(b[24:40], c.SGL[:])
	binary.LittleEndian.PutUint32(b[40:], c.CDW10)
	binary.LittleEndian.PutUint32(b[44:], c.CDW11)
	binary.LittleEndian.PutUint32(b[48:], c.CDW12)
	binary.LittleEndian.PutUint32(b[52:], c.CDW13)
	binary.LittleEndian.PutUint32(b[56:], c.CDW14)
	binary.LittleEndian.PutUint32(b[60:], c.CDW15)
}

// Append appends the 64 octets of the command.
func (c *SQE) Append(dst []byte) []byte {
	var b [SQESize]byte
	c.Put(b[:])
	return append(dst, b[:]...)
}

// FCType returns the type of a Fabrics command.
func (c *SQE) FCType() FCType { return FCType(c.NSID) }

// IsConnect reports whether the command is Connect, which is the first one on each queue.
func (c *SQE) IsConnect() bool { return c.Opcode == OpFabrics && c.FCType() == FCConnect }

// Direction returns which way the data goes, according to the opcode or the type of the Fabrics command.
func (c *SQE) Direction() Direction {
	if c.Opcode == OpFabrics {
		return Direction(c.FCType() & 3)
	}
	return Direction(c.Opcode & 3)
}

// CheckFlags checks the flags: PSDT must be 01b, and FUSE and the reserved bits 0. Otherwise the answer is
// StatusInvalidField.
func (c *SQE) CheckFlags() Status {
	if c.Flags != FlagSGL {
		return StatusInvalidField
	}
	return Success
}

// newSQE returns a command with the flags that all commands have.
func newSQE(op Opcode, cid uint16, nsid uint32, sgl SGL) SQE {
	return SQE{Opcode: op, Flags: FlagSGL, CID: cid, NSID: nsid, SGL: sgl}
}

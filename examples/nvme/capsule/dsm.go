package capsule

import "encoding/binary"

const (
	// DSMRangeSize is the length of a range, in octets.
	DSMRangeSize = 16
	// MaxDSMRanges is the maximum number of ranges of a command.
	MaxDSMRanges = 256
)

// DSM is Dataset Management of the NVM command set.
//
//	40 NR, 8 bits | 44 IDR 0, IDW 1, AD 2
type DSM struct {
	NSID uint32
	NR   uint8 // number of ranges, 0's based
	IDR  bool  // integral dataset for read, for write: hints
	IDW  bool
	AD   bool // deallocate
}

// ParseDSM reads the command.
func ParseDSM(c *SQE) DSM {
	return DSM{
		NSID: c.NSID,
		NR:   uint8(c.CDW10),
		IDR:  c.CDW11&1 == 1,
		IDW:  c.CDW11>>1&1 == 1,
		AD:   c.CDW11>>2&1 == 1,
	}
}

// SQE makes the command, whose data are the ranges.
func (m DSM) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(OpDSM, cid, m.NSID, sgl)
	c.CDW10 = uint32(m.NR)
	c.CDW11 = uint32(bit64(m.IDR, 0) | bit64(m.IDW, 1) | bit64(m.AD, 2))
	return c
}

// Ranges returns the number of ranges: 1 to 256.
func (m DSM) Ranges() int { return int(m.NR) + 1 }

// Check checks the command against the namespace, and the length of its data, which may be longer than the ranges:
// Linux always sends 4096 octets. The status is StatusWriteProtected, StatusInvalidSGLLength or Success.
func (m DSM) Check(b *Bounds, d *Data) Status {
	if b.ReadOnly && m.AD {
		return StatusWriteProtected
	}
	return d.AtLeast(uint64(m.Ranges()) * DSMRangeSize)
}

// A DSMRange is one range of Dataset Management.
//
//	0 attributes, 32 bits | 4 NLB, 32 bits, not 0's based | 8 SLBA, 64 bits
type DSMRange struct {
	Attributes uint32
	NLB        uint32 // 0: nothing
	SLBA       uint64
}

// ParseDSMRange reads range i of the data, which must be long enough: see DSM.Check.
func ParseDSMRange(data []byte, i int) DSMRange {
	b := data[DSMRangeSize*i:][:DSMRangeSize]
	return DSMRange{
		Attributes: binary.LittleEndian.Uint32(b[0:]),
		NLB:        binary.LittleEndian.Uint32(b[4:]),
		SLBA:       binary.LittleEndian.Uint64(b[8:]),
	}
}

// Append appends the 16 octets of the range.
func (r DSMRange) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, r.Attributes)
	dst = binary.LittleEndian.AppendUint32(dst, r.NLB)
	return binary.LittleEndian.AppendUint64(dst, r.SLBA)
}

// CheckDSMRanges checks all ranges of a command before any is carried out: each must be in the namespace, and have at
// most maxBlocks LBAs if that is not 0. The status is StatusLBAOutOfRange, StatusInvalidField or Success.
func CheckDSMRanges(b *Bounds, data []byte, ranges int, maxBlocks uint32) Status {
	for i := range ranges {
		r := ParseDSMRange(data, i)
		if !b.Contains(r.SLBA, uint64(r.NLB)) {
			return StatusLBAOutOfRange
		}
		if maxBlocks != 0 && r.NLB > maxBlocks {
			return StatusInvalidField
		}
	}
	return Success
}

package capsule

import "math"

// RW is Read, Write, Compare or Write Zeroes of the NVM command set.
//
//	40 SLBA, 64 bits | 48 NLB, 16 bits | 50 DEAC 25, PRINFO 29:26, FUA 30, LR 31 of CDW12 | 52 CDW13: hints
type RW struct {
	Opcode Opcode // OpRead, OpWrite, OpCompare, OpWriteZeroes
	NSID   uint32
	SLBA   uint64
	NLB    uint16 // 0's based
	DEAC   bool   // Write Zeroes: the space may be freed
	PRINFO uint8  // 4 bits: protection information, which must be 0
	FUA    bool   // durable before the response
	LR     bool   // few retries
	Hints  uint32 // CDW13
}

// ParseRW reads a command of one of the four opcodes.
func ParseRW(c *SQE) RW {
	return RW{
		Opcode: c.Opcode,
		NSID:   c.NSID,
		SLBA:   uint64(c.CDW11)<<32 | uint64(c.CDW10),
		NLB:    uint16(c.CDW12),
		DEAC:   c.CDW12>>25&1 == 1,
		PRINFO: uint8(c.CDW12 >> 26 & 15),
		FUA:    c.CDW12>>30&1 == 1,
		LR:     c.CDW12>>31 == 1,
		Hints:  c.CDW13,
	}
}

// SQE makes the command. Write Zeroes has no data.
func (m RW) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(m.Opcode, cid, m.NSID, sgl)
	c.CDW10, c.CDW11 = uint32(m.SLBA), uint32(m.SLBA>>32)
	c.CDW12 = uint32(m.NLB) | uint32(bit64(m.DEAC, 25)) | uint32(m.PRINFO&15)<<26 |
		uint32(bit64(m.FUA, 30)|bit64(m.LR, 31))
	c.CDW13 = m.Hints
	return c
}

// Blocks returns the number of LBAs: 1 to 65536.
func (m RW) Blocks() uint64 { return uint64(m.NLB) + 1 }

// Bounds are the limits of commands on a namespace.
type Bounds struct {
	NSZE        uint64 // LBAs
	LBADS       uint8  // an LBA has 2^LBADS octets, and NSZE<<LBADS does not wrap
	MaxTransfer uint64 // octets of Read, Write and Compare, from MDTS; 0: no limit
	ReadOnly    bool
}

// Contains reports whether n LBAs from slba on are in the namespace.
func (b *Bounds) Contains(slba, n uint64) bool { return slba <= b.NSZE && n <= b.NSZE-slba }

// Check checks the command against the namespace, in the order in which a target answers: a write to a read-only
// namespace is StatusWriteProtected, protection information is StatusInvalidProtectionInfo, LBAs beyond its end
// are StatusLBAOutOfRange, more octets than one command may move are StatusInvalidField, and data whose length
// is not that of the LBAs is StatusInvalidSGLLength.
func (m RW) Check(b *Bounds, d *Data) Status {
	octets := m.Blocks() << b.LBADS
	if m.Opcode == OpWriteZeroes {
		octets = 0
	}
	switch {
	case b.ReadOnly && (m.Opcode == OpWrite || m.Opcode == OpWriteZeroes):
		return StatusWriteProtected
	case m.PRINFO != 0:
		return StatusInvalidProtectionInfo
	case !b.Contains(m.SLBA, m.Blocks()):
		return StatusLBAOutOfRange
	case b.MaxTransfer != 0 && octets > b.MaxTransfer:
		return StatusInvalidField
	case m.Opcode == OpWriteZeroes:
		return Success
	}
	return d.Exactly(octets)
}

// FlushSQE makes a Flush, which has neither fields nor data. BroadcastNSID means all namespaces.
func FlushSQE(cid uint16, nsid uint32) SQE { return newSQE(OpFlush, cid, nsid, NullSGL()) }

// maxOctets is the size of the largest namespace, in octets: files and devices have no larger offsets.
const maxOctets = math.MaxInt64

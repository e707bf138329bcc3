package enhanced

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/transport"
)

// Size is the length of the enhanced data in octets.
const Size = 4

// Unset is the all-ones depth: its sender does not negotiate this depth, and leaves
// it to the ULP (RFC 6581 section 9.1).
const Unset = 0x3fff

// MaxDepth is the largest depth that can be sent; Unset is no depth.
const MaxDepth = Unset - 1

// Told returns a depth of the peer for the ULP: -1 if the peer left it open.
func Told(depth uint16) int {
	if depth == Unset {
		return -1
	}
	return int(depth)
}

// The flags, in the upper two bits of each half (RFC 6581 section 9).
const (
	flagA = 0x8000 // first half: peer-to-peer
	flagB = 0x4000 // first half: RTR by zero-length Send
	flagC = 0x8000 // second half: RTR by zero-length RDMA Write
	flagD = 0x4000 // second half: RTR by zero-length RDMA Read
)

// Data is the enhanced data of one frame.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|A|B|        IRD                |C|D|        ORD                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Data struct {
	PeerToPeer bool          // A: an RTR opens Full Operation
	RTR        transport.RTR // B, C, D; empty unless PeerToPeer
	IRD, ORD   uint16        // 14 bits each, Unset: not negotiated
}

// Append appends the four octets to b. Without PeerToPeer no RTR is named,
// whatever RTR says.
func (d Data) Append(b []byte) []byte {
	first, second := d.IRD&Unset, d.ORD&Unset
	if d.PeerToPeer {
		first |= flagA
		first |= flagIf(d.RTR&transport.RTRSend, flagB)
		second |= flagIf(d.RTR&transport.RTRWrite, flagC)
		second |= flagIf(d.RTR&transport.RTRRead, flagD)
	}
	b = binary.BigEndian.AppendUint16(b, first)
	return binary.BigEndian.AppendUint16(b, second)
}

func flagIf(r transport.RTR, flag uint16) uint16 {
	if r == 0 {
		return 0
	}
	return flag
}

// Parse reads the enhanced data at the beginning of b. Without the A flag, the other
// flags have no meaning and are dropped.
func Parse(b []byte) (Data, error) {
	if len(b) < Size {
		return Data{}, fmt.Errorf("enhanced data of %d octets, want %d", len(b), Size)
	}
	first, second := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	d := Data{PeerToPeer: first&flagA != 0, IRD: first & Unset, ORD: second & Unset}
	if !d.PeerToPeer {
		return d, nil
	}
	if first&flagB != 0 {
		d.RTR |= transport.RTRSend
	}
	if second&flagC != 0 {
		d.RTR |= transport.RTRWrite
	}
	if second&flagD != 0 {
		d.RTR |= transport.RTRRead
	}
	return d, nil
}

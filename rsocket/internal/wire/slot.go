package wire

import (
	"fmt"
	"math"
)

// SlotSize is the length of a slot in octets.
const SlotSize = 16

// MaxHalf is the length of the longest half that is accepted from a peer.
const MaxHalf = 1 << 30

// A Slot names memory that the receiver of the slot may write to. One of length 0 names none.
type Slot struct {
	Addr   uint64
	Key    uint32
	Length uint32
}

// Append appends the slot in the order of its receiver.
func (s Slot) Append(b []byte, o Order) []byte {
	b = o.appendUint64(b, s.Addr)
	b = o.appendUint32(b, s.Key)
	return o.appendUint32(b, s.Length)
}

// ParseSlot reads a slot. It is not checked.
func ParseSlot(b *[SlotSize]byte, o Order) Slot {
	return Slot{Addr: o.uint64(b[0:8]), Key: o.uint32(b[8:12]), Length: o.uint32(b[12:16])}
}

// Check refuses memory that cannot exist.
func (s Slot) Check() error {
	switch {
	case s.Length > MaxHalf:
		return fmt.Errorf("a slot of %d octets", s.Length)
	case s.Addr > math.MaxUint64-uint64(s.Length):
		return fmt.Errorf("a slot of %d octets at %#x, beyond the last tagged offset", s.Length, s.Addr)
	}
	return nil
}

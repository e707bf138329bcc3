package wire

import (
	"fmt"
	"math"
)

// EntrySize is the length of an entry of an iomap in octets.
const EntrySize = 24

// MaxEntries is the maximum number of entries of an iomap.
const MaxEntries = 127 << 8

// An Entry names memory that the receiver of the entry may write to by offsets, without messages: its first octet is at Offset.
type Entry struct {
	Offset uint64
	Slot
}

// Append appends the entry in the order of its receiver.
func (e Entry) Append(b []byte, o Order) []byte {
	return e.Slot.Append(o.appendUint64(b, e.Offset), o)
}

// ParseEntry reads an entry. It is not checked.
func ParseEntry(b *[EntrySize]byte, o Order) Entry {
	return Entry{Offset: o.uint64(b[0:8]), Slot: ParseSlot((*[SlotSize]byte)(b[8:]), o)}
}

// Check refuses memory and offsets that cannot exist.
func (e Entry) Check() error {
	if e.Offset > math.MaxUint64-uint64(e.Length) {
		return fmt.Errorf("an entry of %d octets at offset %#x", e.Length, e.Offset)
	}
	return e.Slot.Check()
}

// ScaleEntries returns the octet of the private data that stands for n entries, from 0 to MaxEntries. Above 128 the number is rounded
// up to a multiple of 256.
func ScaleEntries(n int) uint8 {
	if n <= 0x80 {
		return uint8(n)
	}
	return 0x80 | uint8((n+255)>>8)
}

// Entries returns the number of entries that an octet of the private data stands for.
func Entries(scaled uint8) int {
	if scaled <= 0x80 {
		return int(scaled)
	}
	return int(scaled&0x7f) << 8
}

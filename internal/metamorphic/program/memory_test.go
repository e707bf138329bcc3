package program

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAtomicsOfTheModel: the values are computed by hand.
func TestAtomicsOfTheModel(t *testing.T) {
	for _, c := range []struct {
		op        Op
		old, want uint64
	}{
		{Op{Verb: FetchAdd, Add: 1}, 1<<64 - 1, 0},
		{Op{Verb: FetchAdd, Add: 1<<32 | 1, Mask: 1<<63 | 1<<31}, 0x7_ffff_ffff, 0x8_0000_0000},
		{Op{Verb: FetchAdd, Add: 0x0f, Mask: 0x8}, 0x01, 0x00},
		{Op{Verb: Swap, Swap: 5}, 9, 5},
		{Op{Verb: Swap, Swap: 0xabcd, Mask: 0xff}, 0x1234, 0x12cd},
		{Op{Verb: CompareSwp, Cmp: 9, Swap: 5}, 9, 5},
		{Op{Verb: CompareSwp, Cmp: 8, Swap: 5}, 9, 9},
		{Op{Verb: CompareSwp, Cmp: 0x39, Swap: 0x5, Mask: 0xf}, 0x29, 0x25},
	} {
		require.Equal(t, c.want, c.op.atomic(c.old), "%v of %#x", c.op, c.old)
	}
}

// TestAddFieldsBitByBit compares with an adder that carries from bit to bit.
func TestAddFieldsBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		a, b, mask := r.Uint64(), r.Uint64(), r.Uint64()&r.Uint64()&r.Uint64()
		var want, carry uint64
		for bit := range 64 {
			sum := a>>bit&1 + b>>bit&1 + carry
			want |= sum & 1 << bit
			if carry = sum >> 1; mask>>bit&1 == 1 {
				carry = 0
			}
		}
		require.Equal(t, want, addFields(a, b, mask), "%#x + %#x, mask %#x", a, b, mask)
	}
}

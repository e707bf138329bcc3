package rdmap

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// RFC 7306 section 5.1: what the operations do to a value.

// fetchAdd is the loop of RFC 7306 section 5.1.1, bit by bit.
func fetchAdd(value, add, mask uint64) (sum uint64) {
	carry := uint64(0)
	for bit := range 64 {
		at := uint64(1) << bit
		s := carry + value>>bit&1 + add>>bit&1
		sum |= s & 1 << bit
		carry = s >> 1
		if mask&at != 0 {
			carry = 0
		}
	}
	return sum
}

func TestEXT_37_FetchAddOf64Bits(t *testing.T) {
	for _, c := range [][3]uint64{
		{0, 0, 0},
		{1, 2, 3},
		{math.MaxUint64, 1, 0},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1},
		{1 << 63, 1 << 63, 0},
		{math.MaxUint32, 1, 1 << 32},
		{10, math.MaxUint64 - 2, 7},
	} {
		require.Equal(t, c[2], AtomicRequest{Op: FetchAdd, Data: c[1]}.Apply(c[0]), "%#x + %#x", c[0], c[1])
	}
}

func TestEXT_38_FetchAddOfFields(t *testing.T) {
	const halves, octets, bits = 0x8000000080000000, 0x8080808080808080, math.MaxUint64
	for _, c := range []struct{ mask, value, add, want uint64 }{
		{halves, 0x00000001_ffffffff, 0x00000001_00000001, 0x00000002_00000000},
		{halves, 0xffffffff_7fffffff, 0x00000001_00000001, 0x00000000_80000000},
		{halves, 0xffffffff_ffffffff, 0xffffffff_ffffffff, 0xfffffffe_fffffffe},
		{octets, 0xff_7f_00_80_01_fe_ff_10, 0x01_01_01_80_ff_01_ff_f0, 0x00_80_01_00_00_ff_fe_00},
		{bits, 0xf0f0f0f0_12345678, 0xffffffff_00000000, 0x0f0f0f0f_12345678},
		{1 << 63, math.MaxUint64, 1, 0},
		{1, 3, 3, 4}, // the carry out of bit 0 is lost, and 2 + 2 is not
	} {
		require.Equal(t, c.want, AtomicRequest{Op: FetchAdd, Data: c.add, Mask: c.mask}.Apply(c.value), "%#x + %#x, mask %#x", c.value, c.add, c.mask)
		require.Equal(t, c.want, fetchAdd(c.value, c.add, c.mask), "and so says the RFC's loop")
	}
}

func TestEXT_37_38_FetchAddIsTheLoopOfTheRFC(t *testing.T) {
	r := rand.New(rand.NewPCG(7306, 511))
	odd := func() uint64 { // dense, sparse, and with runs of ones
		switch v := r.Uint64(); r.IntN(4) {
		case 0:
			return v & r.Uint64() & r.Uint64()
		case 1:
			return v | r.Uint64() | r.Uint64()
		case 2:
			return bits.RotateLeft64(math.MaxUint64>>r.IntN(64), r.IntN(64))
		default:
			return v
		}
	}
	for range 20000 {
		value, add, mask := odd(), odd(), odd()
		require.Equal(t, fetchAdd(value, add, mask), AtomicRequest{Op: FetchAdd, Data: add, Mask: mask}.Apply(value), "%#x + %#x, mask %#x", value, add, mask)
	}
}

func TestEXT_39_40_41_CompareSwapTruthTable(t *testing.T) {
	// All there is for one bit.
	for v := range 32 {
		bit := func(i int) uint64 { return uint64(v >> i & 1) }
		old, cmp, cmpMask, swap, swapMask := bit(0), bit(1), bit(2), bit(3), bit(4)
		want := old
		if (cmpMask == 0 || cmp == old) && swapMask == 1 {
			want = swap
		}
		h := AtomicRequest{Op: CompareSwap, Data: swap, Mask: swapMask, Compare: cmp, CompareMask: cmpMask}
		require.Equal(t, want, h.Apply(old), "%+v of %d", h, old)
	}
	const old = 0x1122334455667788
	for what, c := range map[string]struct {
		h    AtomicRequest
		want uint64
	}{
		"all bits match":                     {AtomicRequest{Compare: old, CompareMask: math.MaxUint64, Data: 5, Mask: math.MaxUint64}, 5},
		"one bit does not":                   {AtomicRequest{Compare: old ^ 1<<40, CompareMask: math.MaxUint64, Data: 5, Mask: math.MaxUint64}, old},
		"one bit does not, and is masked":    {AtomicRequest{Compare: old ^ 1<<40, CompareMask: ^uint64(1 << 40), Data: 5, Mask: math.MaxUint64}, 5},
		"the part that is compared matches":  {AtomicRequest{Compare: 0x88, CompareMask: 0xff, Data: 0xaabb, Mask: 0xff00}, 0x112233445566aa88},
		"the part that is compared does not": {AtomicRequest{Compare: 0x89, CompareMask: 0xff, Data: 0xaabb, Mask: 0xff00}, old},
		"nothing is compared: a Swap":        {AtomicRequest{Compare: 9, Data: 7, Mask: math.MaxUint64}, 7},
		"nothing is replaced":                {AtomicRequest{Compare: old, CompareMask: math.MaxUint64, Data: 7}, old},
	} {
		c.h.Op = CompareSwap
		require.Equal(t, c.want, c.h.Apply(old), what)
	}
}

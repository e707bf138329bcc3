//go:build !purego

package crc32c

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// polynomial is the polynomial of CRC32c, with the coefficient of x^32.
const polynomial = 0x11EDC6F41

// power returns x^n mod polynomial: bit i is the coefficient of x^i.
func power(n int) uint32 {
	v := uint64(1)
	for range n {
		v <<= 1
		if v>>32 != 0 {
			v ^= polynomial
		}
	}
	return uint32(v)
}

func TestKeysComeFromThePolynomial(t *testing.T) {
	for i, d := range []int{512, 256, 128, 64, 48, 32, 16} {
		want := key{
			a: bits.Reverse64(uint64(power(8*d + 63))),
			b: bits.Reverse64(uint64(power(8*d - 1))),
		}
		require.Equal(t, want, keys[i], "the key that moves by %d octets", d)
	}
	require.Zero(t, keys[len(keys)-1], "the lane that stays is not multiplied")
	require.Len(t, keys, 8, "nothing else is read by the assembly")
}

package crc32c

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

func seeds(f *testing.F) {
	for _, n := range []int{0, 1, 255, 256, 511, 512, 1448, 5000} {
		f.Add(uint32(n)<<20, noise(n), uint16(n/3))
	}
}

// eachWayOf is eachWay without subtests, which a fuzz target cannot have. It leaves out the ways that the processor
// lacks.
func eachWayOf(t *testing.T, f func(t *testing.T)) {
	for _, w := range ways {
		if w.possible() {
			w.force(t)
			f(t)
		}
	}
}

// FuzzUpdate takes the octets in two parts, cut anywhere.
func FuzzUpdate(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, crc uint32, p []byte, cut uint16) {
		a, b := p[:min(int(cut), len(p))], p[min(int(cut), len(p)):]
		want := crc32.Update(crc, castagnoli, p)
		eachWayOf(t, func(t *testing.T) {
			require.Equal(t, want, Update(crc, p), "in one part")
			require.Equal(t, want, Update(Update(crc, a), b), "in two parts")
			dst := make([]byte, len(p)+1)
			require.Equal(t, want, Copy(Copy(crc, dst, a), dst[len(a):], b), "as they are copied")
			require.True(t, bytes.Equal(p, dst[:len(p)]), "what was copied")
			require.Zero(t, dst[len(p)], "and nothing after it")
		})
	})
}

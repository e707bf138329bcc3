package blockcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var canary = []byte{0xa5}

func TestCopyIsThatOfTheLanguage(t *testing.T) {
	src := make([]byte, 600<<10)
	for i := range src {
		src[i] = byte(rand.Uint32())
	}
	for _, n := range []int{0, 1, 255, least - 1, least, least + 1, 4096, 64768, 256<<10 + 1, 513 << 10} {
		for _, at := range []int{0, 1, 18, 63} {
			dst := bytes.Repeat(canary, n+128)
			require.Equal(t, n, Copy(dst[at:at+n], src[7:]), "the shorter of the two counts")
			require.True(t, bytes.Equal(src[7:7+n], dst[at:at+n]), "%d octets to %d", n, at)
			require.Equal(t, 128, bytes.Count(dst[:at], canary)+bytes.Count(dst[at+n:], canary), "nothing else is written")
		}
	}
	dst := make([]byte, 10<<10)
	require.Equal(t, 3000, Copy(dst, src[:3000]), "the source may be shorter")
}

// BenchmarkCopy copies with sizes and alignments that occur for the payload of a segment, in the cache and out of it.
func BenchmarkCopy(b *testing.B) {
	from := make([]byte, 512<<10)
	for _, region := range []int{1 << 20, 64 << 20} {
		to := make([]byte, region)
		for _, n := range []int{1024, 4096, 64768} {
			b.Run(fmt.Sprintf("%dM/%d", region>>20, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				at, off := 0, 16
				for b.Loop() {
					Copy(to[at:at+n], from[off:])
					if at += n; at+n > len(to) {
						at = 0
					}
					if off += n + 20; off+n > len(from) {
						off = 16
					}
				}
			})
		}
	}
}

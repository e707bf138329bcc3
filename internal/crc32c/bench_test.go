package crc32c

import (
	"fmt"
	"testing"
)

// coldBytes is the memory that the cold benchmarks walk over: no cache holds it
// for long.
const coldBytes = 256 << 20

var benchSizes = []int{64, 256, 512, 1448, 4 << 10, 16 << 10, 60 << 10, 256 << 10, 1 << 20, 16 << 20}

// benchmark measures f on pieces of every size, in every way that the processor supports. The memory is always the same
// (hot) or always new (cold).
func benchmark(b *testing.B, f func(p []byte)) {
	mem := make([]byte, coldBytes)
	fill(mem) // so that all pages are present
	for _, size := range benchSizes {
		for _, temperature := range []struct {
			name string
			span int
		}{{"hot", size}, {"cold", coldBytes}} {
			for _, w := range ways {
				b.Run(fmt.Sprintf("%d/%s/%s", size, temperature.name, w.name), func(b *testing.B) {
					w.force(b)
					b.SetBytes(int64(size))
					at := 0
					for b.Loop() {
						f(mem[at : at+size])
						if at += size; at+size > temperature.span {
							at = 0
						}
					}
				})
			}
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	benchmark(b, func(p []byte) { Update(0, p) })
}

// BenchmarkCopy always has the same destination.
func BenchmarkCopy(b *testing.B) {
	dst := make([]byte, benchSizes[len(benchSizes)-1])
	benchmark(b, func(p []byte) { Copy(0, dst, p) })
}

// BenchmarkCopyThenUpdate is what Copy must beat.
func BenchmarkCopyThenUpdate(b *testing.B) {
	dst := make([]byte, benchSizes[len(benchSizes)-1])
	benchmark(b, func(p []byte) {
		copy(dst, p)
		Update(0, dst[:len(p)])
	})
}

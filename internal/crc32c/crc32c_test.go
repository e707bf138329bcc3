package crc32c

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// noise returns n octets that look random and are always the same.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{4}).Read(b)
	return b
}

// eachWay runs f as a subtest for every way of computing.
func eachWay(t *testing.T, f func(t *testing.T)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			w.force(t)
			f(t)
		})
	}
}

// TestKnownAnswers has the examples of RFC 3720 appendix B.4.
func TestKnownAnswers(t *testing.T) {
	up := make([]byte, 32)
	for i := range up {
		up[i] = byte(i)
	}
	require.Equal(t, uint32(0x8a9136aa), Checksum(make([]byte, 32)), "32 octets of zeroes")
	require.Equal(t, uint32(0x62a8ab43), Checksum(bytes.Repeat([]byte{0xff}, 32)), "32 octets of ones")
	require.Equal(t, uint32(0x46dd794e), Checksum(up), "32 octets counting up")
	require.Equal(t, uint32(0xe3069283), Checksum([]byte("123456789")), "the check value of CRC32c")
	require.Zero(t, Checksum(nil), "no octets")
}

// margin is how far around a destination the tests look for stray octets.
const margin = 64

// checkOne compares Update and Copy of src with hash/crc32. The destination begins align octets after a boundary of 64
// in room, which is 0xa5 before and after it.
func checkOne(t *testing.T, crc uint32, src, room []byte, align int) {
	want := crc32.Update(crc, castagnoli, src)
	if got := Update(crc, src); got != want {
		require.Equal(t, want, got, "Update from %08x of %d octets", crc, len(src))
	}
	at := margin + align
	if got := Copy(crc, room[at:], src); got != want {
		require.Equal(t, want, got, "Copy from %08x of %d octets to alignment %d", crc, len(src), align)
	}
	end := at + len(src)
	if !bytes.Equal(room[at:end], src) || !untouched(room[:at]) || !untouched(room[end:end+margin]) {
		require.Fail(t, "Copy is exact", "%d octets to alignment %d", len(src), align)
	}
	fill(room[at:end])
}

func untouched(b []byte) bool {
	for _, c := range b {
		if c != 0xa5 {
			return false
		}
	}
	return true
}

func fill(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

func TestEveryLengthAtEveryAlignment(t *testing.T) {
	const longest = 4200
	data := noise(64 + longest)
	room := make([]byte, margin+64+longest+margin)
	fill(room)
	step := 1
	if raceorder.Enabled {
		step = 37 // coprime to 64, so that all alignments still occur
	}
	eachWay(t, func(t *testing.T) {
		for at := 0; at < 64*(longest+1); at += step {
			n, align := at/64, at%64
			// At some length, the other alignment takes all values, too.
			checkOne(t, uint32(at)*0x9e3779b9, data[align:align+n], room, (5*align+n)%64)
		}
	})
}

func TestLongLengths(t *testing.T) {
	const piece = 256 << 10 // the assembly gets as many octets at once
	data := noise(3*piece + 1000)
	room := make([]byte, len(data)+2*margin+64)
	fill(room)
	eachWay(t, func(t *testing.T) {
		for _, n := range []int{
			65535, 65536, piece - 1, piece, piece + 1, piece + 255, piece + 256, piece + 319, piece + 512,
			2*piece + 777, 3*piece - 64, 3*piece + 999,
		} {
			checkOne(t, 0xdeadbeef, data[1:1+n], room, 3)
		}
	})
}

func TestCopyIntoLongerAndShorter(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		src, dst := noise(1000), make([]byte, 999)
		require.Panics(t, func() { Copy(0, dst, src) }, "a destination must have room")
		require.Equal(t, make([]byte, 999), dst, "and nothing is copied when it has not")
		require.EqualValues(t, 7, Copy(7, nil, nil), "no octets need no room")
	})
}

func TestNoAllocations(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	eachWay(t, func(t *testing.T) {
		var sum uint32
		dst := make([]byte, 2000)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			var src [2000]byte // Copy leaves it on the stack
			sum = Copy(sum, dst, src[:])
			sum = Copy(sum, dst, src[:100])
			sum = Update(sum, dst)
			sum = Update(sum, dst[:100])
		}))
	})
}

func TestJoinIsChecksumAndCopy(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		src := noise(700)
		for _, n := range []int{0, 1, 16, 20, 300} {
			for _, size := range []int{0, 1, 2, 3, 4, 7, 8, 31, 32, 33, 64, 100, 255, 256, 511, 700} {
				p := noise(n + size + 9)
				want := append(bytes.Clone(p[:n]), src[:size]...)
				rest := bytes.Clone(p[n+size:])
				require.Equal(t, crc32.Checksum(want, castagnoli), Join(p, n, src[:size]), "%d octets behind %d", size, n)
				require.Equal(t, want, p[:n+size], "they are where they belong")
				require.Equal(t, rest, p[n+size:], "and nowhere else")
			}
		}
		require.Panics(t, func() { Join(make([]byte, 10), 4, src[:7]) }, "there must be room")
	})
}

//go:build !purego

package crc32c

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// A cpuForm is a form of the computation that processors have or lack.
type cpuForm int

const (
	stdlib cpuForm = iota
	avx2           // VPCLMULQDQ of 256 bits: AMD Zen 3, Intel Alder Lake
	avx512         // of 512 bits: AMD Zen 4, Intel Ice Lake
)

const (
	// least is what the 256-bit form takes at least, and from there on it is faster
	// than hash/crc32. The 512-bit form is faster again from least512 on, which is
	// what it takes at least.
	least    = 256
	least512 = 512

	// block is what both take multiples of.
	block = 64

	// most is how many octets go into the assembly at once: the scheduler cannot
	// interrupt it, so it must not stay there for long.
	most = 256 << 10
)

// form is the best that this processor has. Only tests write it.
var form = best()

func best() cpuForm {
	switch {
	case !cpu.X86.HasSSE42 || !cpu.X86.HasAVX2 || !hasVPCLMULQDQ():
		return stdlib
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ:
		return avx512
	}
	return avx2
}

// hasVPCLMULQDQ asks the processor for what package cpu tells only of those with
// AVX-512. It must have AVX2: that implies that there is such a leaf of CPUID, and
// that the system saves the registers.
func hasVPCLMULQDQ() bool

// fold takes from the beginning of p what the assembly can take, and returns the
// CRC32c of that behind crc, and the rest.
func fold(crc uint32, p []byte) (uint32, []byte) {
	if form == stdlib {
		return crc, p
	}
	for len(p) >= least {
		n := min(len(p), most) &^ (block - 1)
		// The assembly's CRC is the register of the division, which begins and
		// ends inverted.
		if form == avx512 && n >= least512 {
			crc = ^update512(^crc, p[:n])
		} else {
			crc = ^update256(^crc, p[:n])
		}
		p = p[n:]
	}
	return crc, p
}

// foldCopy is fold of src, which it copies to dst. They are of one length, and so
// are the rests.
func foldCopy(crc uint32, dst, src []byte) (uint32, []byte, []byte) {
	if form == stdlib {
		return crc, dst, src
	}
	for len(src) >= least {
		n := min(len(src), most) &^ (block - 1)
		if form == avx512 && n >= least512 {
			crc = ^copy512(^crc, dst[:n], src[:n])
		} else {
			crc = ^copy256(^crc, dst[:n], src[:n])
		}
		dst, src = dst[n:], src[n:]
	}
	return crc, dst, src
}

// short is Update of what is left: hash/crc32 does the same, but spends as much time on
// calls as on the octets of a small FPDU.
func short(crc uint32, p []byte) uint32 {
	if form == stdlib {
		return crc32.Update(crc, castagnoli, p)
	}
	return ^updateShort(^crc, p)
}

// shortCopy is Copy of what is left, octet for octet in one pass: to copy first, and
// then to load what was just stored in other pieces, stalls the processor.
func shortCopy(crc uint32, dst, src []byte) uint32 {
	if form == stdlib {
		copy(dst, src)
		return short(crc, dst)
	}
	return ^copyShort(^crc, dst, src)
}

// shortJoin is the CRC32c of head and then src, which it copies to dst.
func shortJoin(head, dst, src []byte) uint32 {
	if form == stdlib {
		return shortCopy(short(0, head), dst, src)
	}
	return ^copyShort(updateShort(^uint32(0), head), dst, src)
}

//go:noescape
func copyShort(crc uint32, dst, src []byte) uint32

//go:noescape
func updateShort(crc uint32, p []byte) uint32

//go:noescape
func update256(crc uint32, p []byte) uint32

//go:noescape
func update512(crc uint32, p []byte) uint32

//go:noescape
func copy256(crc uint32, dst, src []byte) uint32

//go:noescape
func copy512(crc uint32, dst, src []byte) uint32

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
	// least is the minimum length of the 256-bit form, which from there on is faster
	// than hash/crc32. least512 is the minimum length of the 512-bit form, which from
	// there on is faster than the 256-bit form.
	least    = 256
	least512 = 512

	// block is the number of octets of which both forms take multiples.
	block = 64

	// most is how many octets the assembly processes at once: the scheduler cannot
	// interrupt it, so a call must not last long.
	most = 256 << 10
)

// form is the best form that this processor supports. Only tests write it.
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

// hasVPCLMULQDQ reports whether the processor has VPCLMULQDQ, which package cpu reports
// only for processors with AVX-512. The processor must have AVX2: this implies that the
// CPUID leaf exists, and that the system saves the registers.
func hasVPCLMULQDQ() bool

// fold processes as much of the beginning of p as the assembly can take. It returns the
// CRC32c of those octets behind crc, and the rest of p.
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

// foldCopy is like fold of src, and copies the octets to dst. The slices have the same
// length, and so have the rests.
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

// short performs Update for the rest. hash/crc32 does the same, but spends as much time on
// calls as on the octets of a small FPDU.
func short(crc uint32, p []byte) uint32 {
	if form == stdlib {
		return crc32.Update(crc, castagnoli, p)
	}
	return ^updateShort(^crc, p)
}

// shortCopy performs Copy for the rest, octet by octet in one pass: copying first, and then
// loading in other pieces what was just stored, stalls the processor.
func shortCopy(crc uint32, dst, src []byte) uint32 {
	if form == stdlib {
		copy(dst, src)
		return short(crc, dst)
	}
	return ^copyShort(^crc, dst, src)
}

// shortJoin returns the CRC32c of head followed by src, and copies src to dst.
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

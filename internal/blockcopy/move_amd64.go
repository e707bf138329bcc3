//go:build !purego && !race

package blockcopy

import "golang.org/x/sys/cpu"

// fast reports whether the processor has fast short REP MOVSB (FSRM), for any
// alignment: Intel Ice Lake, AMD Zen 3 and later.
var fast = cpu.X86.HasAVX2 && hasFSRM()

// most is how many octets one instruction copies: the scheduler cannot interrupt it.
const most = 256 << 10

// hasFSRM reports whether the processor has FSRM, which package cpu does not report. The
// processor must have AVX2: this implies that the CPUID leaf exists.
func hasFSRM() bool

// repMovsb copies n octets.
//
//go:noescape
func repMovsb(dst, src *byte, n int)

// move copies src to dst, which has the same length and does not overlap src.
func move(dst, src []byte) {
	for len(src) > 0 {
		n := min(len(src), most)
		repMovsb(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
}

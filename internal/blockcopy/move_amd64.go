//go:build !purego && !race

package blockcopy

import "golang.org/x/sys/cpu"

// fast tells that the processor has fast short REP MOVSB (FSRM), whatever the
// alignment: Intel Ice Lake, AMD Zen 3 and later ones.
var fast = cpu.X86.HasAVX2 && hasFSRM()

// most is how many octets go into one instruction: the scheduler cannot interrupt it.
const most = 256 << 10

// hasFSRM asks the processor for what package cpu does not tell. It must have AVX2:
// that implies that there is such a leaf of CPUID.
func hasFSRM() bool

// repMovsb copies n octets.
//
//go:noescape
func repMovsb(dst, src *byte, n int)

// move copies src to dst, which has its length and does not overlap it.
func move(dst, src []byte) {
	for len(src) > 0 {
		n := min(len(src), most)
		repMovsb(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
}

//go:build amd64 && !purego

package pmem

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// mem does not move, unlike memory on a stack.
var mem = make([]byte, 1024)

func TestEveryLineIsWrittenBack(t *testing.T) {
	base := uintptr(unsafe.Pointer(&mem[0]))
	for off := range 70 {
		for n := range 200 {
			want := map[uintptr]bool{}
			for i := range n {
				want[(base+uintptr(off+i))/line] = true
			}
			got := map[uintptr]bool{}
			lines(mem[off:off+n], func(p unsafe.Pointer) {
				at := uintptr(p)
				require.True(t, at >= base+uintptr(off) && at < base+uintptr(off+n), "nothing outside is touched")
				require.False(t, got[at/line], "once")
				got[at/line] = true
			})
			require.Equal(t, want, got)
		}
	}
}

func TestInstructions(t *testing.T) {
	mem[100] = 0
	p := unsafe.Pointer(&mem[100])
	for _, ebx := range []uint32{0, cpuid7() & (1 << 23), cpuid7() & (1 << 24)} {
		mem[100]++
		choose(ebx)(p)
		Fence()
	}
	WriteBack(mem)
	WriteBack(nil)
	require.EqualValues(t, 3, mem[100], "writing back changes nothing")
	require.True(t, Supported())
}

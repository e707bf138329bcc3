//go:build linux && !purego

package transport

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestResidencyKnowsWhatIsInMemory: pages that were never touched are not there, and what is
// known of other pages does not count for them.
func TestResidencyKnowsWhatIsInMemory(t *testing.T) {
	page := int(pageSize)
	mem, err := unix.Mmap(-1, 0, 16*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mem)) }()
	touch := func(pages ...int) {
		for _, i := range pages {
			mem[i*page] = 1
		}
	}
	iov := func(from, n int) unix.Iovec {
		v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&mem[from*page]))}
		v.SetLen(n * page)
		return v
	}
	var r residency
	forget := func() { r.until = 0 }
	touch(4, 5, 6, 7)
	require.True(t, r.covers([]unix.Iovec{iov(4, 2), iov(6, 2)}))
	require.False(t, r.covers([]unix.Iovec{iov(3, 2)}), "the page before")
	require.False(t, r.covers([]unix.Iovec{iov(7, 2)}), "the page behind")
	require.False(t, r.covers([]unix.Iovec{iov(4, 4), iov(10, 1)}), "a page elsewhere")
	touch(3, 8)
	require.True(t, r.covers([]unix.Iovec{iov(3, 6)}), "both sides of what is known")
	touch(10)
	require.True(t, r.covers([]unix.Iovec{iov(10, 1), iov(4, 2)}))
	require.False(t, r.covers([]unix.Iovec{iov(9, 2)}))

	require.NoError(t, unix.Madvise(mem, unix.MADV_DONTNEED))
	forget()
	require.False(t, r.covers([]unix.Iovec{iov(4, 2)}), "the answer of the kernel counts for a while only")

	small := iov(12, 1)
	small.SetLen(page - 1)
	require.True(t, r.covers([]unix.Iovec{small}), "a header is not looked at")
	require.True(t, r.covers(nil))
}

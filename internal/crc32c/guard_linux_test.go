package crc32c

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// guarded returns pages of memory between two pages that must not be touched.
func guarded(t *testing.T, pages int) []byte {
	size := os.Getpagesize()
	all, err := unix.Mmap(-1, 0, (pages+2)*size, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(all)) })
	mem := all[size : size+pages*size]
	require.NoError(t, unix.Mprotect(mem, unix.PROT_READ|unix.PROT_WRITE))
	return mem
}

// TestNoAccessOutside: an access outside the slices is a fault, which ends the test binary.
func TestNoAccessOutside(t *testing.T) {
	src, dst := guarded(t, 2), guarded(t, 2)
	copy(src, noise(len(src)))
	eachWay(t, func(t *testing.T) {
		for n := 0; n <= len(src); n++ {
			if n > 1600 && n%61 != 0 && n < len(src)-10 {
				continue
			}
			front, back := src[:n], src[len(src)-n:]
			require.Equal(t, Update(9, back), Copy(9, dst[:n], back), "%d octets up to the end", n)
			require.Equal(t, Update(9, front), Copy(9, dst[len(dst)-n:], front), "%d octets from the beginning", n)
		}
	})
}

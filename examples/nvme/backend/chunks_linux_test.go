//go:build linux && !race

package backend

import (
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// resident returns how many pages of a mapping are in memory. It fails if there is no such mapping.
func resident(mapping []byte) (n int, err error) {
	pages := make([]byte, len(mapping)/unix.Getpagesize())
	at, to := unsafe.Pointer(unsafe.SliceData(mapping)), unsafe.Pointer(unsafe.SliceData(pages))
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(at), uintptr(len(mapping)), uintptr(to)); errno != 0 {
		return 0, errno
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n, nil
}

// TestNVME_76_MemoryGoesBackToTheSystem: trimmed memory does at once, and all of it when the Memory is no longer used.
func TestNVME_76_MemoryGoesBackToTheSystem(t *testing.T) {
	m, err := NewMemory(MemoryConfig{Size: 8 << 20})
	require.NoError(t, err)
	for off := int64(0); off < m.Size(); off += memoryChunk {
		require.NoError(t, m.WriteAt(ctx, fill(memoryChunk, 1), off, false))
	}
	mapping := m.from.mapped[0]
	n, err := resident(mapping)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 8<<20/unix.Getpagesize())
	require.NoError(t, m.Trim(ctx, 0, 8<<20))
	n, err = resident(mapping)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, m.WriteAt(ctx, fill(4096, 2), 4096, false))
	requireZeros(t, m, 8192, memoryChunk-8192, "what was there before")
	runtime.KeepAlive(m)
	m = nil
	require.Eventually(t, func() bool {
		runtime.GC()
		_, err := resident(mapping)
		return errors.Is(err, unix.ENOMEM)
	}, 10*time.Second, time.Millisecond)
}

// TestNVME_76_ClosedMemoryGoesBackToTheSystem: it does so at once, and a write in progress takes none of it. A small
// Memory reserves no more than it may need: a 32-bit process has addresses for only a few large ones.
func TestNVME_76_ClosedMemoryGoesBackToTheSystem(t *testing.T) {
	for _, c := range []struct {
		config MemoryConfig
		mapped int
	}{
		{MemoryConfig{Size: 4096}, memoryChunk},
		{MemoryConfig{Size: 3 << 20}, 3<<20 + hugePage},
		{MemoryConfig{Size: 1 << 40, Cap: 1 << 20}, memoryChunk},
		{MemoryConfig{Size: 1 << 30}, mappedChunks*memoryChunk + hugePage},
	} {
		m, err := NewMemory(c.config)
		require.NoError(t, err)
		require.NoError(t, m.WriteAt(ctx, fill(4096, 1), 0, false))
		mapping := m.from.mapped[0]
		require.Equal(t, c.mapped, len(mapping))
		require.NoError(t, m.Close())
		_, err = resident(mapping)
		require.ErrorIs(t, err, unix.ENOMEM, "unmapped")
		require.ErrorIs(t, m.allocate(0), ErrClosed)
		require.Empty(t, m.from.mapped)
		runtime.KeepAlive(m)
	}
}

package commit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func platformBackings(t *testing.T, m map[string]func(string, int64) (backing, error)) {
	m["mapping"] = func(path string, size int64) (backing, error) { return MapFile(path, size) }
	probe := filepath.Join(t.TempDir(), "probe")
	if f, err := OpenFile(probe, &FileOptions{Size: directBlock, Direct: true}); err == nil {
		require.NoError(t, f.Close())
		m["direct"] = func(path string, size int64) (backing, error) {
			return OpenFile(path, &FileOptions{Size: size, Direct: true})
		}
	}
}

// TestCutMapping: another program makes the file shorter while it is mapped.
func TestCutMapping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	m, err := MapFile(path, 64<<10)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	_, err = m.WriteAt([]byte("before"), 32<<10)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 4096))
	require.ErrorIs(t, m.Flush(context.Background(), 32<<10, 6), syscall.EIO, "what was cut away is not durable")
	_, err = m.WriteAt([]byte("after"), 40<<10)
	require.ErrorIs(t, err, syscall.EIO, "writing there is an error and no crash")
	require.ErrorContains(t, err, "is gone")
	_, err = m.ReadAt(make([]byte, 5), 40<<10)
	require.ErrorIs(t, err, syscall.EIO, "and so is reading")
	_, err = m.WriteAt([]byte("left"), 0)
	require.NoError(t, err, "what is left can be used")
	_, err = m.WriteAt(make([]byte, 2), 64<<10-1)
	require.Error(t, err, "outside of it")
}

// TestFaultsOfOthers: only a fault within the mapping is an error.
func TestFaultsOfOthers(t *testing.T) {
	m, err := MapFile(filepath.Join(t.TempDir(), "data"), 64<<10)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.PanicsWithValue(t, "another", func() { _, _ = m.access(8, 0, func([]byte) { panic("another") }) })
	other, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(other)) }()
	require.Panics(t, func() { _, _ = m.access(8, 0, func([]byte) { other[0] = 1 }) })
	require.False(t, debug.SetPanicOnFault(false), "the goroutine is as it was")
	for _, part := range []struct {
		off int64
		n   int
	}{{-1, 1}, {-8, 16}, {64 << 10, 1}, {64<<10 + 1, 0}, {64<<10 - 7, 8}} {
		if part.off < 0 {
			_, err = m.ReadAt(make([]byte, part.n), part.off)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d octets at %d", part.n, part.off)
		}
		_, err = m.WriteAt(make([]byte, part.n), part.off)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	word := make([]byte, 8)
	_, err = m.WriteAt([]byte("12345678"), 16)
	require.NoError(t, err)
	_, err = m.ReadAt(word, 16)
	require.NoError(t, err)
	require.Equal(t, "12345678", string(word))
	require.True(t, m.Atomic())
}

func TestCloseOfAMappingInUse(t *testing.T) {
	m, err := MapFile(filepath.Join(t.TempDir(), "data"), 64<<10)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				if _, err := m.WriteAt(make([]byte, 4096), 8192); err != nil {
					require.ErrorIs(t, err, os.ErrClosed)
					return
				}
				_ = m.Flush(context.Background(), 8192, 4096)
			}
		})
	}
	require.NoError(t, m.Close())
	all.Wait()
	require.NoError(t, m.Close(), "closing again is no error")
}

func TestPMemNeedsPMem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	m, err := MapPMem(path, 64<<10)
	if err == nil { // the tests run on persistent memory
		require.NoError(t, m.Close())
		return
	}
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, path)
}

// TestWriteBack writes back the cache lines of an ordinary mapping, which has no
// visible effect but must not fault.
func TestWriteBack(t *testing.T) {
	m, err := mapFile(host{}, filepath.Join(t.TempDir(), "data"), 64<<10, unix.MAP_SHARED)
	require.NoError(t, err)
	m.group = newGroup(m.size, false, m.writeBack)
	defer func() { require.NoError(t, m.Close()) }()
	_, err = m.WriteAt(make([]byte, 60000), 1)
	require.NoError(t, err)
	require.NoError(t, m.Flush(context.Background(), 1, 60000))
	_, err = m.WriteAt([]byte("x"), 60000)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(m.f.Name(), 4096))
	require.ErrorIs(t, m.Flush(context.Background(), 60000, 1), syscall.EIO, "what was cut away is an error")
}

func TestReadOnlyFilesAreRefused(t *testing.T) {
	for _, path := range []string{"/proc/version", "/sys/kernel/notes"} {
		_, err := OpenFile(path, nil)
		require.Error(t, err, "%s cannot be written to", path)
		_, err = MapFile(path, 0)
		require.Error(t, err)
	}
}

func TestFullDisk(t *testing.T) {
	var st unix.Statfs_t
	dir := t.TempDir()
	require.NoError(t, unix.Statfs(dir, &st))
	path := filepath.Join(dir, "huge")
	whole := int64(st.Blocks) * int64(st.Bsize) //nolint:unconvert // an int32 on some processors
	_, err := OpenFile(path, &FileOptions{Size: whole + 1<<40})
	require.ErrorIs(t, err, syscall.ENOSPC, "room is reserved when the file is made, not when it is too late")
	var file unix.Stat_t
	require.NoError(t, unix.Stat(path, &file))
	require.Zero(t, file.Blocks, "and what others need is not taken")
}

// TestRoomForHoles: a file that is long enough, but was never written.
func TestRoomForHoles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holes")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<20))
	blocks := func() int64 {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		return st.Blocks
	}
	b, err := OpenFile(path, nil)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Zero(t, blocks(), "it stays as it is if nothing is said of its size")
	b, err = OpenFile(path, &FileOptions{Size: 64 << 10})
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, b.Size())
	require.NoError(t, b.Close())
	require.GreaterOrEqual(t, blocks(), int64(1<<20/512), "there is room for all of it")
}

// TestRoomForHolesOfAFileWithBlocksBeyondItsEnd: those blocks do not count.
func TestRoomForHolesOfAFileWithBlocksBeyondItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holes")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, f.Truncate(1<<20))
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 1<<20, 1<<20)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("the file system reserves nothing")
	}
	require.NoError(t, err)
	b, err := OpenFile(path, &FileOptions{Size: 1 << 20})
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, b.Size())
	require.NoError(t, b.Close())
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	require.GreaterOrEqual(t, st.Blocks, int64(2<<20/512), "there is room for all of it")
}

func TestDirectNeedsWholeBlocks(t *testing.T) {
	_, err := OpenFile(filepath.Join(t.TempDir(), "data"), &FileOptions{Size: 5000, Direct: true})
	require.ErrorContains(t, err, "no multiple")
}

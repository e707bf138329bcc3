package backend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
)

func TestNVME_76_SizeOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(path, fill(10000, 1), 0o600))
	for _, c := range []struct{ size, block, want int64 }{{0, 0, 8192}, {0, 512, 9728}, {0, 4096, 8192}, {5000, 512, 9728}, {20000, 0, 16384}} {
		b, err := OpenFile(FileConfig{Path: path, Size: c.size, BlockSize: int(c.block)})
		require.NoError(t, err)
		require.Equal(t, c.want, b.Size(), "rounded down to blocks")
		requireEqual(t, fill(10000, 1)[:8192], mustRead(t, b, 0, 8192), "what was there")
		require.NoError(t, b.Close())
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 20000, info.Size())
}

func TestFileThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "disk")
	require.NoError(t, os.WriteFile(path, fill(1000, 1), 0o600))
	for _, c := range []struct {
		config FileConfig
		want   string
	}{
		{FileConfig{Path: filepath.Join(dir, "none")}, "none"},
		{FileConfig{Path: filepath.Join(dir, "none"), Size: 4096, ReadOnly: true}, "none"},
		{FileConfig{Path: dir}, "is no regular file"},
		{FileConfig{Path: path}, "1000 octets are less than one block of 4096"},
		{FileConfig{Path: path, BlockSize: 1000}, "no power of two from 512 to 4096"},
		{FileConfig{Path: path, BlockSize: 8192}, "no power of two from 512 to 4096"},
		{FileConfig{Path: path, Discard: true}, "is one of block devices"},
		{FileConfig{Path: path, BlockSize: 512, Size: -1}, "a size of -1 octets"},
	} {
		_, err := OpenFile(c.config)
		require.ErrorContains(t, err, c.want)
	}
	b, err := OpenFile(FileConfig{Path: path, BlockSize: 512})
	require.NoError(t, err, "none of them has kept the lock")
	require.NoError(t, b.Close())
	_, err = OpenDevice(FileConfig{Path: path})
	require.Error(t, err)
}

func TestFileOfACommitBacking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	f, err := commit.OpenFile(path, &commit.FileOptions{Size: 1 << 20})
	require.NoError(t, err)
	_, err = OpenFile(FileConfig{Path: path})
	require.ErrorIs(t, err, commit.ErrInUse)
	require.NoError(t, f.Close())
}

func TestNVME_76_FileThatWasCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	b, err := OpenFile(FileConfig{Path: path, Size: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 4096))
	require.ErrorIs(t, b.ReadAt(ctx, make([]byte, 8192), 0), ErrRead)
	require.NoError(t, b.ReadAt(ctx, make([]byte, 4096), 0))
	require.NoError(t, b.Close())
}

// TestDirectoryOfAFile: it is the directory of the file that a symbolic link leads to. The link may be in another one.
func TestDirectoryOfAFile(t *testing.T) {
	links, disks := t.TempDir(), t.TempDir()
	path := filepath.Join(links, "disk")
	if err := os.Symlink(filepath.Join(disks, "made"), path); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	b, err := OpenFile(FileConfig{Path: path, Size: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	dir, err := directoryOf(f)
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	have, err := dir.Stat()
	require.NoError(t, err)
	want, err := os.Stat(disks)
	require.NoError(t, err)
	require.True(t, os.SameFile(want, have))
}

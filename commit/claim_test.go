package commit

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCMT_13_OneBackingOfAFile: what is written through one backing would not be synced by another.
func TestCMT_13_OneBackingOfAFile(t *testing.T) {
	for first, open := range backings(t) {
		for second, again := range backings(t) {
			t.Run(first+" and "+second, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "data")
				b, err := open(path, 64<<10)
				require.NoError(t, err)
				require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
				names := []string{path, filepath.Join(dir, "sub", "..", "data")}
				for name, link := range map[string]func(old, name string) error{"hard": os.Link, "symbolic": os.Symlink} {
					name = filepath.Join(dir, name)
					if err := link(path, name); err == nil {
						names = append(names, name)
					}
				}
				for _, name := range names {
					for _, size := range []int64{0, 64 << 10, 1 << 20} {
						_, err = again(name, size)
						require.ErrorIs(t, err, ErrInUse, "as %s", name)
						require.ErrorContains(t, err, name)
					}
				}
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.EqualValues(t, 64<<10, info.Size(), "what is refused changes nothing")
				_, err = b.WriteAt([]byte("record"), 0)
				require.NoError(t, err)
				require.NoError(t, b.Flush(context.Background(), 0, 6), "the first is as it was")

				other, err := again(filepath.Join(dir, "other"), 64<<10)
				require.NoError(t, err, "another file is another matter")
				require.NoError(t, b.Close())
				c, err := again(names[len(names)-1], 0)
				require.NoError(t, err, "one that was closed is free")
				require.NoError(t, c.Close())
				require.NoError(t, other.Close())
			})
		}
	}
}

// TestCMT_13_RenamedFileIsTheSame, and a new file with its old name is not.
func TestCMT_13_RenamedFileIsTheSame(t *testing.T) {
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "data"), filepath.Join(dir, "moved")
	b, err := OpenFile(path, &FileOptions{Size: 4096})
	require.NoError(t, err)
	if err := os.Rename(path, moved); err != nil {
		require.NoError(t, b.Close())
		t.Skip("an open file cannot be renamed here")
	}
	_, err = OpenFile(moved, nil)
	require.ErrorIs(t, err, ErrInUse)
	c, err := OpenFile(path, &FileOptions{Size: 4096})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
}

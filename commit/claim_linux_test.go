package commit

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCMT_13_FileOfAnotherProcess: a lock on another open file stands for that process.
func TestCMT_13_FileOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	b, err := OpenFile(path, &FileOptions{Size: 4096})
	require.NoError(t, err)
	other, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	lock := func() error {
		return withFD(other, "flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	}
	require.ErrorIs(t, lock(), syscall.EWOULDBLOCK)
	require.NoError(t, b.Close())
	require.NoError(t, lock())
	_, err = OpenFile(path, nil)
	require.ErrorIs(t, err, ErrInUse)
	_, err = MapFile(path, 0)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, withFD(other, "flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_UN) }))
	b, err = OpenFile(path, nil)
	require.NoError(t, err, "and nothing was kept of what was refused")
	require.NoError(t, b.Close())
}

// A node is what is known of a device node.
type node struct {
	os.FileInfo
	st syscall.Stat_t
}

func (n node) Sys() any { return &n.st }

// TestCMT_13_NodesOfOneDevice: a block device may have several.
func TestCMT_13_NodesOfOneDevice(t *testing.T) {
	at := func(mode uint32, rdev uint64) os.FileInfo {
		return node{st: syscall.Stat_t{Mode: mode | 0o600, Rdev: rdev}}
	}
	first, err := claimFile(at(syscall.S_IFBLK, 7))
	require.NoError(t, err)
	_, err = claimFile(at(syscall.S_IFBLK, 7))
	require.ErrorIs(t, err, ErrInUse)
	for _, other := range []os.FileInfo{at(syscall.S_IFBLK, 8), at(syscall.S_IFREG, 7), at(syscall.S_IFCHR, 7)} {
		c, err := claimFile(other)
		require.NoError(t, err)
		c.release()
	}
	first.release()
	again, err := claimFile(at(syscall.S_IFBLK, 7))
	require.NoError(t, err)
	again.release()
}

// TestCMT_13_NameOfANewFile: the file's own directory is synced, wherever links lead.
func TestCMT_13_NameOfANewFile(t *testing.T) {
	r, path := record(t)
	elsewhere := filepath.Join(filepath.Dir(filepath.Dir(path)), "elsewhere")
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "target"), path), "which leads to nothing yet")
	for range 2 {
		f, err := openFile(r, path, &FileOptions{Size: 4096})
		require.NoError(t, err)
		calls := r.took()
		require.Contains(t, calls, "fsync elsewhere")
		require.NotContains(t, calls, "fsync dir")
		require.NoError(t, f.Close())
		r.took()
	}
	r.fails(func(call string) error {
		if call == "forget data" { // a moment before the name is looked at
			require.NoError(t, os.Remove(filepath.Join(elsewhere, "target")))
			require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "target"), []byte("another"), 0o600))
		}
		return nil
	})
	_, err := openFile(r, path, nil)
	require.ErrorContains(t, err, "another file has taken its place")
}

// TestDirectOpensTheSameFile: the second descriptor is opened by name.
func TestDirectOpensTheSameFile(t *testing.T) {
	r, path := record(t)
	r.fails(func(call string) error {
		if call == "open data rw direct" {
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.WriteFile(path, make([]byte, 4096), 0o600))
		}
		return nil
	})
	_, err := openFile(r, path, &FileOptions{Size: 4096, Direct: true})
	require.ErrorContains(t, err, "another file has taken its place")
	r.fails(nil)
	_, err = openFile(r, path, &FileOptions{Size: 5000, Direct: true})
	require.ErrorContains(t, err, "no multiple")
}

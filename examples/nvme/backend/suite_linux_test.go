package backend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func platformSubjects() []subject {
	return []subject{
		{"file direct", directSubject(FileConfig{Direct: true})},
		{"file direct dsync", directSubject(FileConfig{Direct: true, Sync: true})},
		{"block", loopSubject(FileConfig{})},
		{"block direct 4096", loopSubject(FileConfig{Direct: true, BlockSize: 4096})},
		{"block dsync", loopSubject(FileConfig{Sync: true})},
		{"block discard", loopSubject(FileConfig{Discard: true})},
	}
}

func directSubject(c FileConfig) func(*testing.T) (Backend, func() Backend) {
	return func(t *testing.T) (Backend, func() Backend) {
		probe := FileConfig{Path: filepath.Join(t.TempDir(), "probe"), Size: 4096, Direct: true}
		b, err := OpenFile(probe)
		if err != nil {
			t.Skipf("the file system has no direct I/O: %v", err)
		}
		require.NoError(t, b.Close())
		return fileSubject(c)(t)
	}
}

// loopDevice makes a block device of size octets, or skips the test.
func loopDevice(t *testing.T, size int64) (path string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a loop device takes root")
	}
	if testing.Short() {
		t.Skip("a loop device takes its time")
	}
	backing := filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.WriteFile(backing, nil, 0o600))
	require.NoError(t, os.Truncate(backing, size))
	out, err := exec.Command("losetup", "--find", "--show", backing).CombinedOutput()
	if err != nil {
		t.Skipf("there is no loop device here: %v: %s", err, out)
	}
	path = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		out, err := exec.Command("losetup", "--detach", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	return path
}

func loopSubject(c FileConfig) func(*testing.T) (Backend, func() Backend) {
	return func(t *testing.T) (Backend, func() Backend) {
		c := c
		c.Path = loopDevice(t, suiteSize)
		return reopening(t, func() (Backend, error) { return OpenDevice(c) })
	}
}

// isThrough reports whether each write of m is durable.
func isThrough(m medium) bool {
	switch m := m.(type) {
	case *linuxFile:
		return m.always
	case *device:
		return m.always
	}
	return false
}

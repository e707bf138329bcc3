//go:build unix

package kv

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipeInPlaceOfAFile: a pipe is refused before it is opened, which would wait for its other end.
func TestPipeInPlaceOfAFile(t *testing.T) {
	w := newWorld(t, "pipe")
	require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, "backup"), 0o600))
	_, err := Open(w.context(), w.config("backup", 1))
	require.ErrorContains(t, err, "is neither a file nor a block device")
}

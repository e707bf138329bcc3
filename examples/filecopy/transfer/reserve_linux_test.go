package transfer

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDisk: it is reported in words before anything is copied, and the connection goes on.
func TestAFullDisk(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	var room syscall.Statfs_t
	require.NoError(t, syscall.Statfs(s.dir, &room))
	size := int64((room.Blocks + 1) * uint64(room.Bsize))
	if size > maxSize {
		t.Skip("a file as long as the disk is refused for its length here")
	}
	local, err := os.Create(filepath.Join(t.TempDir(), "local"))
	require.NoError(t, err)
	defer func() { require.NoError(t, local.Close()) }()
	if err := local.Truncate(size); err != nil || room.Blocks == 0 { // the file is one hole
		t.Skip("no file can be as long here: ", err)
	}
	_, err = c.Put(ctx, local.Name(), "name")
	require.EqualError(t, err, "server: create name: no space left on device")
	require.Empty(t, s.names(t))
	small, _ := file(t, filepath.Join(t.TempDir(), "small"), odd)
	_, err = c.Put(ctx, small, "name")
	require.NoError(t, err)
}

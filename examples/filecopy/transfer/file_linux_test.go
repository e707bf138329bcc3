package transfer

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/sysfail"
)

// TestSyncThatIsInterrupted: it has failed, since EINTR may be a lost page's error. The file does not get its name.
func TestSyncThatIsInterrupted(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	in, err := create(root, "name", odd)
	require.NoError(t, err)
	defer in.discard()
	require.ErrorIs(t, sysfail.Run(t, unix.EINTR, in.keep, unix.SYS_FSYNC), unix.EINTR)
	_, err = root.Stat("name")
	require.ErrorIs(t, err, os.ErrNotExist)
}

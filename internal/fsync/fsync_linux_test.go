package fsync

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/sysfail"
)

// TestOneCall: a failure is final, even if the errno suggests an interruption by a signal.
func TestOneCall(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "data"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for op, x := range map[string]struct {
		call uint32
		sync func(*os.File) error
	}{"fsync": {unix.SYS_FSYNC, File}, "fdatasync": {unix.SYS_FDATASYNC, Data}} {
		require.NoError(t, x.sync(f))
		for _, no := range []unix.Errno{unix.EINTR, unix.EAGAIN, unix.EIO} {
			err := sysfail.Run(t, no, func() error { return x.sync(f) }, x.call)
			require.ErrorIs(t, err, no)
			require.ErrorContains(t, err, op+" "+f.Name(), "it says what has failed")
		}
	}
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
)

// TestResizeAfterAFailedSync: a file whose sync fails, or has failed, is not opened again as if nothing had happened.
func TestResizeAfterAFailedSync(t *testing.T) {
	ctx := context.Background()
	for name, before := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			fake, err := backend.NewFake(backend.FakeConfig{Size: 1 << 20})
			require.NoError(t, err)
			fake.Inject(backend.Fault{Call: backend.CallSync, Err: syscall.EIO})
			path := filepath.Join(t.TempDir(), "disk.img")
			require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
			spec, err := backend.ParseSpec("file:" + path)
			require.NoError(t, err)
			m := &medium{spec: spec, resizable: true, size: fake.Size(), back: fake}
			v := m.view()
			require.NoError(t, v.WriteAt(ctx, random(4096), 0, false))
			if before {
				require.ErrorIs(t, v.Flush(ctx), backend.ErrSync)
			}
			require.Error(t, m.resize(2<<20))
			require.ErrorIs(t, v.Flush(ctx), backend.ErrFailed)
			require.ErrorIs(t, v.WriteAt(ctx, random(4096), 0, false), backend.ErrFailed)
			require.EqualValues(t, 1<<20, m.view().Size())
			require.NoError(t, m.close())
		})
	}
}

// TestResizeOfAReadOnlyFile: it does not become larger.
func TestResizeOfAReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	m, err := openMedium("file:"+path+",ro", true)
	require.NoError(t, err)
	require.Error(t, m.resize(2<<20))
	require.EqualValues(t, 1<<20, m.view().Size())
	require.NoError(t, m.resize(1<<19))
	require.EqualValues(t, 1<<19, m.view().Size())
	require.NoError(t, m.resize(1<<20))
	require.NoError(t, m.close())
}

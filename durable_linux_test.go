//go:build linux && !purego

package iwarp_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// TestCMT_29_30_FileThatIsCut: another program makes the file shorter while a peer
// writes it.
func TestCMT_29_30_FileThatIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	m, err := commit.MapFile(path, 64<<10)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	client, server := committers(t)
	ctx := testContext(t)
	mr, err := server.pd.RegisterBuffer(m, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: m})
	require.NoError(t, err)
	_, local := client.register(4096, stag.LocalWrite, nil)
	require.NoError(t, os.Truncate(path, 4096))

	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(32<<10, 4096), local.Slice(0, 4096)))
	require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(32<<10, 4096)), commit.ErrDataLost, "no crash, and no success")
	require.NoError(t, client.qp.RDMARead(ctx, local.Slice(0, 8), mr.Advertise(0, 8)), "the stream goes on")
	require.NoError(t, os.Truncate(path, 64<<10))
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(32<<10, 4096), local.Slice(0, 4096)))
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(32<<10, 4096)), "the file is whole again")

	require.NoError(t, os.Truncate(path, 4096))
	require.Error(t, client.qp.RDMARead(ctx, local.Slice(0, 8), mr.Advertise(32<<10, 8)), "a Read of them fails")
}

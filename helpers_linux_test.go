//go:build linux && !purego

package iwarp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestHelpersThatNeedNotBlockSucceed: if a connection is driven through its Write method, sending may block, and is left
// to a goroutine.
func TestHelpersThatNeedNotBlockSucceed(t *testing.T) {
	client, server := connect(t, pairConfig{})
	_, src := client.register(8, 0, nil)
	_, dst := server.register(8, stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	time.Sleep(10 * time.Millisecond) // the RTR is out
	require.NoError(t, client.qp.RDMAWrite(ctx, dst.Advertise(0, 8), src.Slice(0, 8)), "though the context has ended")
	require.NoError(t, client.qp.Send(ctx))
}

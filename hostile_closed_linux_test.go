//go:build linux && !purego

package iwarp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_81_PeerThatTakesNothing: for three times the timeout, the peer only acknowledges, and so is alive. Then it
// takes everything.
func TestRDMAP_81_PeerThatTakesNothing(t *testing.T) {
	t.Parallel()
	const peerTimeout, messages = 1500 * time.Millisecond, 32
	cfg := &iwarp.Config{PeerTimeout: peerTimeout}
	client, server := connect(t, pairConfig{
		clientR: cfg, serverR: cfg,
		client: iwarp.QPConfig{SendDepth: messages}, server: iwarp.QPConfig{RNRWait: time.Minute, RecvDepth: messages},
	})
	buf, mr := client.register(1<<20, stag.LocalWrite, nil)
	_, sink := server.register(len(buf), stag.LocalWrite, nil)
	for range messages {
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, len(buf))}}))
	}
	select {
	case <-client.qp.Done():
		require.Fail(t, "it is taken for dead", "%v", client.qp.Err())
	case <-server.qp.Done():
		require.Fail(t, "it is taken for dead", "%v", server.qp.Err())
	case <-time.After(3 * peerTimeout):
	}
	for range messages {
		_, err := server.qp.Recv(testContext(t), sink.Slice(0, len(buf)))
		require.NoError(t, err)
	}
	require.NoError(t, client.qp.Drain(testContext(t)))
}

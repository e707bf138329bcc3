package iwarp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestCM_44_NothingIsAllocatedAfterAuthentication: the data path is that of other connections.
func TestCM_44_NothingIsAllocatedAfterAuthentication(t *testing.T) {
	clientAuth, serverAuth := authenticators()
	client, server := connect(t, pairConfig{
		client: iwarp.QPConfig{Auth: clientAuth}, listen: &iwarp.ListenConfig{Auth: serverAuth},
	})
	_, known := server.qp.Peer()
	require.True(t, known)
	_, cm := client.register(64, stag.LocalWrite, nil)
	_, sm := server.register(64, stag.LocalWrite|stag.Remote, nil)
	local := []iwarp.SGE{cm.Slice(0, 64)}
	recv := []iwarp.RecvWR{{Local: []iwarp.SGE{sm.Slice(0, 64)}}}
	wcs, wr := make([]iwarp.WC, 1), make([]iwarp.SendWR, 1)
	for _, w := range []iwarp.SendWR{
		{Op: iwarp.OpRDMAWrite, Local: local, Remote: sm.Advertise(0, 64)},
		{Op: iwarp.OpRDMARead, Local: local, Remote: sm.Advertise(0, 64)},
		{Op: iwarp.OpSend, Local: local},
	} {
		wantNoAllocs(t, w.Op.String(), func() {
			if w.Op == iwarp.OpSend {
				require.NoError(t, server.qp.PostRecv(recv...))
			}
			wr[0] = w
			require.NoError(t, client.qp.PostSend(wr...))
			one(t, client.qp.SendCQ(), wcs)
			if w.Op == iwarp.OpSend {
				one(t, server.qp.RecvCQ(), wcs)
			}
		})
	}
}

package iwarp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestNothingIsInUseWhenDoneIsClosed: the CQ, the SRQ and the PD of a QP can then be closed, however it has ended.
func TestNothingIsInUseWhenDoneIsClosed(t *testing.T) {
	for name, end := range map[string]func(client, server *iwarp.QP) error{
		"Close":               func(c, _ *iwarp.QP) error { return c.Close() },
		"Close of the peer":   func(_, s *iwarp.QP) error { return s.Close() },
		"Abort of the peer":   func(_, s *iwarp.QP) error { return s.Abort() },
		"Terminate of a peer": func(_, s *iwarp.QP) error { return s.Terminate() },
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				client, server := newSide(t, nil), newSide(t, nil)
				cq, err := client.rnic.CreateCQ(256)
				require.NoError(t, err)
				srq, err := client.pd.CreateSRQ(1)
				require.NoError(t, err)
				require.NoError(t, srq.PostRecv(iwarp.RecvWR{}))
				client.connect(server, pairConfig{network: "tcp", client: iwarp.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq}})
				require.ErrorContains(t, cq.Close(), "still in use")
				require.ErrorContains(t, srq.Close(), "still in use")
				require.ErrorContains(t, client.pd.Close(), "still in use")

				ended := make(chan error, 1)
				go func() { ended <- end(client.qp, server.qp) }()
				<-client.qp.Done()
				require.NoError(t, cq.Close())
				require.NoError(t, srq.Close())
				require.NoError(t, client.pd.Close())
				require.NoError(t, <-ended)
			}
		})
	}
}

package enhanced

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// TestSEC_40_DepthsOfThePeerStayWithinOurs: whatever a Request asks for, this end provides no more depth than it would
// anyway, and a mark for "not specified" is not a number (RFC 6581 section 12).
func TestSEC_40_DepthsOfThePeerStayWithinOurs(t *testing.T) {
	ours := Limits{IRD: 16, ORD: 4, RTR: transport.RTRSend | transport.RTRWrite | transport.RTRRead}
	for _, ird := range []uint16{0, 1, 4, 5, MaxDepth, Unset} {
		for _, ord := range []uint16{0, 1, 16, 17, MaxDepth, Unset} {
			for _, rtr := range []transport.RTR{0, transport.RTRSend, transport.RTRWrite, transport.RTRRead, transport.RTRSend | transport.RTRWrite | transport.RTRRead} {
				req := Data{PeerToPeer: rtr != 0, IRD: ird, ORD: ord, RTR: rtr}
				_, agreed := Respond(req, ours)
				require.LessOrEqual(t, agreed.IRD, 16, "%+v", req)
				require.LessOrEqual(t, agreed.ORD, 4, "%+v", req)
				if ird != Unset {
					require.LessOrEqual(t, agreed.ORD, int(ird), "%+v", req)
				}
			}
		}
	}
	_, agreed := Respond(Data{IRD: MaxDepth, ORD: MaxDepth}, Limits{IRD: 1 << 20, ORD: 1 << 20, RTR: transport.RTRWrite})
	require.Equal(t, Agreed{IRD: MaxDepth, ORD: MaxDepth}, agreed, "nor is our own more than 14 bits can tell")
}

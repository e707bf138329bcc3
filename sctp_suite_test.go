package iwarp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpudp"
)

// datagrams, if not nil, has pairs and scripted peers meet over SCTP over UDP, over a
// network that it makes for each of them.
var datagrams func() *packetNetwork

// sessionPair makes the two ends of a session.
func sessionPair(t testing.TB, n *packetNetwork) (a, b transport.LLP) {
	t.Helper()
	cfg := sctpudp.Config{ListenPacket: n.listen}
	l, err := sctpudp.Listen(t.Context(), cfg, "127.0.0.1:7471", 1)
	require.NoError(t, err)
	c := sctpudp.NewClient(cfg)
	t.Cleanup(func() {
		c.Close()
		l.End()
	})
	accepted := make(chan *sctp.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := l.Accept(); err == nil {
			if b, _, err := r.Accept(sctp.Options{}, 1, 1, nil); err == nil {
				accepted <- b
			}
		}
	}()
	s, err := c.Open(t.Context(), l.Addr().String())
	require.NoError(t, err)
	x, _, err := sctp.Connect(t.Context(), s, sctp.Options{}, 1, 1, nil)
	require.NoError(t, err)
	return x, <-accepted
}

// notOfSessions are the tests of a reset: a session of several on one association ends in
// one way only, with a Terminate message (RFC 5043 section 6).
var notOfSessions = []string{"TestARCH_37_AbortFlushesInPostOrder", "TestDDP_60_61_ConnectionIsReset"}

// ofNoLoss are the tests that hold what is sent to have arrived at the same moment.
var ofNoLoss = []string{
	"TestCancelledContextStopsTheWaiting",
	"TestRDMAP_109_ARCH_23_PeerReadsNothing",
	"TestDDP_65_77_ARCH_11_WaitForAReceiveHoldsNobodyUp",
	"TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow",
	"TestSEC_33_WaitsForAReceiveAreCounted",
	"TestARCH_11_MessageWaitsNoLongerThanRNRWait",

	// These move so much that a network which loses some takes seconds for it.
	"TestARCH_1_2_BuffersOfAnyKindAreServedAlike",
	"TestARCH_22_ManyGoroutinesOnOneQP",
	"TestCloseOnBothSidesAtOnce",
}

// TestSCTP_44_45_52_OperationsOverSCTP: over a network that loses, duplicates and reorders
// so much of what is sent.
func TestSCTP_44_45_52_OperationsOverSCTP(t *testing.T) {
	t.Cleanup(func() { reordering, datagrams = 0, nil })
	reordering = 1
	for _, percent := range []int{0, 1, 5} {
		datagrams = func() *packetNetwork { return newPacketNetwork(float64(percent)/100, 7) }
		for _, test := range operations {
			if slices.Contains(notOfSessions, nameOf(test)) || percent > 0 && slices.Contains(ofNoLoss, nameOf(test)) {
				continue
			}
			t.Run(fmt.Sprintf("%d%%/%s", percent, nameOf(test)), test)
		}
	}
}

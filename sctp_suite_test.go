package iwarp

import (
	"fmt"
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

// TestSCTP_44_45_OperationsOverSCTP: over a network that loses, duplicates and reorders
// so much of what is sent.
func TestSCTP_44_45_OperationsOverSCTP(t *testing.T) {
	t.Cleanup(func() { reordering, datagrams = 0, nil })
	reordering = 1
	for _, percent := range []int{0, 1, 5} {
		datagrams = func() *packetNetwork { return newPacketNetwork(float64(percent)/100, 7) }
		for _, test := range operations {
			t.Run(fmt.Sprintf("%d%%/%s", percent, nameOf(test)), test)
		}
	}
}

package wiretest

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
	"github.com/goiwarp/iwarp/transport/sctpudp"
)

// LLP, if not nil, makes the two ends of the lower layer between QPs and Peers, instead of
// MPA over TCP: a suite sets it to run its tests again over another layer.
var LLP func(t testing.TB) (a, b transport.LLP)

// Records makes LLPs that deliver together the segments that are sent together, in any order
// within a window. The seed chooses the order.
func Records(seed uint64) func(testing.TB) (a, b transport.LLP) {
	return func(testing.TB) (a, b transport.LLP) {
		return recordpipe.New(recordpipe.Options{Seed: seed, Window: 16})
	}
}

// Sessions makes sessions of SCTP over UDP, each on its own network.
func Sessions(network func() *PacketNetwork) func(testing.TB) (a, b transport.LLP) {
	return func(t testing.TB) (a, b transport.LLP) {
		t.Helper()
		cfg := sctpudp.Config{ListenPacket: network().ListenPacket}
		l, err := sctpudp.Listen(t.Context(), cfg, "127.0.0.1:7471", 1)
		require.NoError(t, err)
		return meet(t, sctpudp.NewClient(cfg), l)
	}
}

// KernelSessions makes sessions of the kernel's SCTP.
func KernelSessions(t testing.TB) (a, b transport.LLP) {
	t.Helper()
	l, err := sctpkernel.Listen(t.Context(), sctpkernel.Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	return meet(t, sctpkernel.NewClient(sctpkernel.Config{}), l)
}

// NeedsSCTP skips a test if the kernel has no SCTP. If IWARP_REQUIRE_SCTP is set, the
// test fails instead.
func NeedsSCTP(t testing.TB) {
	t.Helper()
	l, err := sctpkernel.Listen(t.Context(), sctpkernel.Config{}, "127.0.0.1:0", 1)
	if errors.Is(err, sctpkernel.ErrNoSCTP) && os.Getenv("IWARP_REQUIRE_SCTP") == "" {
		t.Skip("the kernel has no SCTP; the interop lab runs this test")
	}
	require.NoError(t, err)
	l.End()
}

// A sessionClient opens sessions over one of the two SCTP back ends.
type sessionClient interface {
	Open(ctx context.Context, addr string) (sctp.Stream, error)
	Close()
}

// A sessionListener accepts sessions.
type sessionListener interface {
	Addr() net.Addr
	Accept() (*sctp.Request, error)
	End()
}

// meet makes the two ends of a session, and ends client and listener with the test.
func meet(t testing.TB, c sessionClient, l sessionListener) (a, b transport.LLP) {
	t.Helper()
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

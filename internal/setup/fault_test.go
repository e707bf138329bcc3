package setup

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

func TestConnThatIsNone(t *testing.T) {
	require.EqualError(t, CheckConn("client", nil), "iwarp: client: the net.Conn is nil")
	require.Error(t, CheckConn("server", (*net.TCPConn)(nil)))
	require.NoError(t, CheckConn("server", new(net.TCPConn)))
}

func TestLocalFailureIsTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.Nil(t, LocalFailure(ctx))
	cancel()
	require.Equal(t, &transport.Fault{Code: transport.MPALocalCatastrophic, Err: context.Canceled}, LocalFailure(ctx))
}

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/captures"
)

// TestRPR_18_RPCHeader reads the RPC header of captured calls, and refuses what is none.
func TestRPR_18_RPCHeader(t *testing.T) {
	b := captures.Headers(t)["READ call: a Write chunk"]
	_, n := parsed(t, b)
	var c CallHeader
	require.NoError(t, c.Parse(b[n:]))
	require.Equal(t, CallHeader{XID: 0x462cbf04, Program: 100003, Version: 3, Procedure: 6}, c)
	require.ErrorIs(t, c.Parse(b[n:n+39]), ErrRPC, "shorter than any call")
	reply := captures.Headers(t)["READ reply by the Write chunk: 10001 octets"]
	_, n = parsed(t, reply)
	require.ErrorIs(t, c.Parse(reply[n:]), ErrRPC, "a reply")
}

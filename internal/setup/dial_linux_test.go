package setup

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/testproc"
	"github.com/goiwarp/iwarp/transport"
)

// TestDialOverSCTPWithoutDescriptors: the error says so, and not that the network is unreachable.
func TestDialOverSCTPWithoutDescriptors(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	m := newManager(t)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = 3
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	for _, network := range []string{SCTP, SCTPUDP} {
		own, _ := local(t)
		err := m.Dial(someTime(t), network, "127.0.0.1:9", own)
		require.ErrorIs(t, err, transport.ErrExhausted, network)
		require.ErrorIs(t, err, syscall.EMFILE, network)
	}
}

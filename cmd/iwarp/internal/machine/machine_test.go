package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFacts(t *testing.T) {
	names := make(map[string]Fact)
	for _, f := range Facts(t.Context()) {
		require.NotEmpty(t, f.Value, f.Name)
		require.NotEmpty(t, f.Group, f.Name)
		require.Equal(t, f.Lacks, f.Remedy != "", "%s: what is missing has a remedy", f.Name)
		names[f.Name] = f
	}
	for _, n := range []string{"platform", "Go", "cores", "CRC32c", "tcp", "tls", "sctp", "sctp+udp", "epoll"} {
		require.Contains(t, names, n)
	}
	require.False(t, names["tcp"].Lacks)
	require.False(t, names["sctp+udp"].Lacks)
}

func TestAnUnknownNetworkIsMissing(t *testing.T) {
	f := network(t.Context(), "ipx", "DDP over IPX")
	require.True(t, f.Lacks)
	require.Contains(t, f.Remedy, "ipx")
}

package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
)

// TestKindsAddUp: each kind has its own rate, and the sum of all rates is that of the Row.
func TestKindsAddUp(t *testing.T) {
	old, now := sends(1, "a", 10, 1000), sends(1, "a", 30, 5000)
	now.Sent.RDMAWrite = counters.Traffic{Messages: 4, Octets: 400}
	now.Received.ReadRequest = counters.Traffic{Messages: 6}
	v := Compare(at(time.Second, ofRNIC(0, counters.Traffic{}, old)), at(3*time.Second, ofRNIC(0, counters.Traffic{}, now)), Options{})
	r := &v.Rows[0]
	kinds := make(map[string]Kind)
	var sum Rate
	for _, k := range r.Kinds() {
		kinds[k.Name] = k
		addRate(&sum, k.SentRate)
	}
	require.Len(t, kinds, 10)
	require.Equal(t, Kind{Name: "send", SentRate: Rate{10, 2000}, SentTotal: now.Sent.Send}, kinds["send"])
	require.Equal(t, Kind{Name: "rdma_write", SentRate: Rate{2, 200}, SentTotal: now.Sent.RDMAWrite}, kinds["rdma_write"])
	require.Equal(t, Kind{Name: "read_request", ReceivedRate: Rate{Messages: 3}, ReceivedTotal: now.Received.ReadRequest}, kinds["read_request"])
	require.Equal(t, r.SentRate, sum)
}

// TestKindsWithoutAStateBefore have totals, and no rates.
func TestKindsWithoutAStateBefore(t *testing.T) {
	v := Compare(nil, at(time.Second, ofRNIC(0, counters.Traffic{}, sends(1, "a", 10, 1000))), Options{})
	k := v.Rows[0].Kinds()[0]
	require.Equal(t, Kind{Name: "send", SentTotal: counters.Traffic{Messages: 10, Octets: 1000}}, k)
}

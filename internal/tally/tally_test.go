package tally

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
)

// TestRetransmitsDoNotGoBack: a QP that has no connection any more, and has not left yet, keeps the segments that were sent again in
// the sum. Else a counter would go back, which readers take for a beginning from 0.
func TestRetransmitsDoNotGoBack(t *testing.T) {
	var all Tally
	all.Init(false, nil)
	for range 2 {
		all.Made("raw TCP")
	}
	of := func(qps ...Live) *counters.Path {
		s := all.Snapshot()
		AddLive(s, len(qps), func(i int, l *Live) {
			*l = qps[i]
			l.Counts.Path = "raw TCP"
		})
		return &s.Paths[0]
	}
	stands := Live{TCP: counters.TCP{RTT: time.Millisecond, Retransmits: 7, Unacked: 1}, HasTCP: true}
	require.Equal(t, counters.TCP{RTT: time.Millisecond, Retransmits: 14, Unacked: 2}, of(stands, stands).TCP)

	p := of(stands, Live{TCP: counters.TCP{Retransmits: 7}})
	require.Equal(t, counters.TCP{RTT: time.Millisecond, Retransmits: 14, Unacked: 1}, p.TCP)
	require.Equal(t, 1, p.TCPs)

	all.Ended(Ending{Counts: &counters.QP{Path: "raw TCP"}, Retransmits: 7})
	require.EqualValues(t, 14, of(stands).TCP.Retransmits)
}

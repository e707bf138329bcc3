package tally

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/rdmap"
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

// TestSumsOfLatenciesDoNotGoBack: that of all requests of an RNIC can be longer than a Duration, and is the longest one then.
func TestSumsOfLatenciesDoNotGoBack(t *testing.T) {
	var all Tally
	all.Init(true, []string{"Send"})
	l := all.Made("raw TCP")
	sum := func() time.Duration { return all.Snapshot().Paths[0].Latency[0].Sum }
	const most = math.MaxInt64
	for range 3 {
		l.Observe(0, -most/2) // an RNIC that is as old
	}
	require.Equal(t, time.Duration(most), sum())
	l.Observe(0, -most/2)
	require.Equal(t, time.Duration(most), sum())
	l.ops[0].sum.Store(math.MinInt64) // another goroutine has added to it, and has come no further
	require.Equal(t, time.Duration(most), sum())
}

// TestEachOpcodeIsCountedOnce, in one of the kinds of counters.Ops: what is left out there is in no statistics, metric or live view.
func TestEachOpcodeIsCountedOnce(t *testing.T) {
	for op := range rdmap.Opcode(16) {
		var one [16]rdmap.Traffic
		one[op] = rdmap.Traffic{Messages: 1, Octets: 10}
		ops := Ops(&one)
		var sum rdmap.Traffic
		for _, n := range ops.All {
			sum.Messages += n.Messages
			sum.Octets += n.Octets
		}
		if strings.HasPrefix(op.String(), "opcode ") && op != commit.OpRequest && op != commit.OpResponse {
			require.Zero(t, sum, "nothing is sent with %v", op)
		} else {
			require.Equal(t, one[op], sum, "%v is counted by Ops, in a field of counters.Ops", op)
		}
	}
}

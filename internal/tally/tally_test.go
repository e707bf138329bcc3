package tally

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// TestRetransmitsDoNotGoBack: a QP whose connection has ended, and which has not left yet, keeps its retransmitted
// segments in the sum. Otherwise the counter would decrease, which readers take for a restart at 0.
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
	tcp := func(retransmits, of uint64) counters.TCP {
		return counters.TCP{RTT: time.Millisecond, RTTVar: time.Second, Retransmits: retransmits, Unacked: of, Window: 10 * of}
	}
	stands := Live{TCP: tcp(7, 1), HasTCP: true}
	require.Equal(t, tcp(14, 2), of(stands, stands).TCP)

	p := of(stands, Live{TCP: counters.TCP{Retransmits: 7}})
	require.Equal(t, tcp(14, 1), p.TCP)
	require.Equal(t, 1, p.TCPs)

	all.Ended(Ending{Counts: &counters.QP{Path: "raw TCP"}, Retransmits: 7})
	require.EqualValues(t, 14, of(stands).TCP.Retransmits)
}

// TestSumsAreInOrder: the order serves to find each live QP's sums, except those of a path that did not exist yet.
func TestSumsAreInOrder(t *testing.T) {
	var all Tally
	all.Init(false, nil)
	var want []string
	for i := range 20 {
		want = append(want, string(rune('b'+i)))
		all.Made(want[i])
	}
	codes := []counters.Terminate{
		{Type: 1, Code: 2, Known: true, Count: 1},
		{Type: 1, Code: 2, Known: true, Remote: true, Count: 1},
		{Layer: 2, Code: 3, Known: true, Count: 1},
		{Count: 1},
		{Remote: true, Count: 1},
	}
	for _, c := range slices.Backward(codes) {
		code := transport.MakeCode(0xf, 0xf, 0xff)
		if c.Known {
			code = transport.MakeCode(c.Layer, c.Type, c.Code)
		}
		all.Terminated(code, c.Remote)
	}
	s := all.Snapshot()
	require.Equal(t, codes, s.Terminates, "those that no RFC has are the last")
	live := append([]string{"a", "zz"}, want...)
	AddLive(s, len(live), func(i int, l *Live) { l.Counts.Path = live[i] })
	var got []string
	for _, p := range s.Paths {
		got = append(got, p.Path)
		require.Equal(t, 1, p.Live, p.Path)
	}
	require.Equal(t, want, got)
}

// TestSumsOfLatenciesDoNotGoBack: the sum over all requests of an RNIC can exceed the longest Duration, and then stays
// at that value.
func TestSumsOfLatenciesDoNotGoBack(t *testing.T) {
	var all Tally
	all.Init(true, []string{"Send"})
	l := all.Made("raw TCP")
	sum := func() time.Duration { return all.Snapshot().Paths[0].Latency[0].Sum }
	const most = math.MaxInt64
	for range 3 {
		l.Observe(0, -most/2) // an RNIC of that age
	}
	require.Equal(t, time.Duration(most), sum())
	l.Observe(0, -most/2)
	require.Equal(t, time.Duration(most), sum())
	l.ops[0].sum.Store(math.MinInt64) // another goroutine has added to the sum, and has done nothing more
	require.Equal(t, time.Duration(most), sum())
}

// TestEachOpcodeIsCountedOnce: each one is in one kind of counters.Ops. An opcode missing there would be in no
// statistics, metric or live view.
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

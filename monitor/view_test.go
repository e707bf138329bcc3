package monitor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
)

// sends returns a QP that has sent so much.
func sends(id uint64, remote string, messages, octets uint64) QP {
	q := QP{ID: id, Remote: remote, State: "RTS", Network: "tcp"}
	q.Path = "raw TCP"
	q.Sent.Send = counters.Traffic{Messages: messages, Octets: octets}
	return q
}

// ofRNIC returns an RNIC with these QPs, and with QPs that have ended.
func ofRNIC(id int, ended counters.Traffic, qps ...QP) RNIC {
	r := RNIC{ID: id, QPs: qps}
	r.Paths = []counters.Path{{}}
	p := &r.Paths[0]
	p.Path = "raw TCP"
	p.Sent.RDMAWrite = ended
	for i := range qps {
		p.Add(&qps[i].QP)
		p.TCP.Retransmits += qps[i].retransmits()
	}
	return r
}

func at(uptime time.Duration, rnics ...RNIC) *State {
	return &State{Uptime: uptime, Process: Process{PID: 1}, RNICs: rnics}
}

// TestRatesAreOfTheInterval, including rates of QPs that came and went.
func TestRatesAreOfTheInterval(t *testing.T) {
	before := at(time.Second, ofRNIC(0, counters.Traffic{}, sends(1, "a", 10, 1000), sends(2, "b", 5, 50)))
	// 2 has sent 50 more octets in 5 more messages before it ended.
	after := at(3*time.Second, ofRNIC(0, counters.Traffic{Messages: 10, Octets: 100}, sends(1, "a", 30, 5000), sends(3, "c", 4, 40)))
	v := Compare(before, after, Options{})
	require.Equal(t, 2*time.Second, v.Interval)
	require.Equal(t, Rate{Messages: (20 + 5 + 4) / 2.0, Octets: (4000 + 50 + 40) / 2.0}, v.Sent)
	require.Zero(t, v.Received)
	require.Equal(t, counters.Traffic{Messages: 44, Octets: 5140}, v.SentTotal)
	require.Equal(t, 2, v.QPs)
	require.Equal(t, 1, v.Came)
	require.Equal(t, 1, v.Went)
	require.Equal(t, Rate{Messages: 10, Octets: 2000}, v.Rows[0].SentRate)
	require.Equal(t, Rate{Messages: 2, Octets: 20}, v.Rows[1].SentRate)
	require.Equal(t, counters.Traffic{Messages: 30, Octets: 5000}, v.Rows[0].SentTotal)
}

// TestQPsComeAndGoWithTheirRNIC: an RNIC that was added or removed between two States.
func TestQPsComeAndGoWithTheirRNIC(t *testing.T) {
	before := at(time.Second, ofRNIC(0, counters.Traffic{}, sends(1, "a", 10, 1000), sends(2, "b", 5, 50)))
	after := at(3*time.Second, ofRNIC(1, counters.Traffic{}, sends(3, "c", 4, 40)))
	v := Compare(before, after, Options{})
	require.Equal(t, 1, v.Came)
	require.Equal(t, 2, v.Went)
	require.Zero(t, v.Sent, "its rates are not known")
	v = Compare(nil, after, Options{})
	require.Zero(t, v.Came+v.Went)
}

// TestNoRatesWithoutAStateBefore: there are only totals.
func TestNoRatesWithoutAStateBefore(t *testing.T) {
	one := at(time.Second, ofRNIC(0, counters.Traffic{}, sends(1, "a", 10, 1000)))
	one.RNICs[0].CQOverflows = 3
	other := at(0, ofRNIC(0, counters.Traffic{}))
	other.Process.PID = 2
	earlier := at(0, ofRNIC(0, counters.Traffic{}))
	earlier.Process.Started = time.Unix(1, 0)
	later := at(2*time.Second, ofRNIC(0, counters.Traffic{}))
	for name, before := range map[string]*State{"none": nil, "the same": one, "another process": other, "an earlier one with the same number": earlier, "a later one": later} {
		v := Compare(before, one, Options{})
		require.Zero(t, v.Interval, name)
		require.Zero(t, v.Sent, name)
		require.Zero(t, v.Rows[0].SentRate, name)
		require.Equal(t, counters.Traffic{Messages: 10, Octets: 1000}, v.SentTotal, name)
		require.Equal(t, []Error{{"CQ overflows", Count{Total: 3}}}, v.Errors, name)
		require.Zero(t, v.Came+v.Went, name)
	}
	// An RNIC that was added with a history has no rates yet.
	v := Compare(at(time.Second), at(2*time.Second, one.RNICs[0]), Options{})
	require.Equal(t, time.Second, v.Interval)
	require.Zero(t, v.Sent)
}

// TestCountersThatAreReadWhileTheyCount do not fall.
func TestCountersThatAreReadWhileTheyCount(t *testing.T) {
	v := Compare(at(1, ofRNIC(0, counters.Traffic{}, sends(1, "a", 10, 10))), at(2, ofRNIC(0, counters.Traffic{}, sends(1, "a", 9, 9))), Options{})
	require.Zero(t, v.Sent)
	require.Zero(t, v.Rows[0].SentRate)
}

// TestErrorsAreThoseThatHaveHappened, with the terms of the RFCs.
func TestErrorsAreThoseThatHaveHappened(t *testing.T) {
	before, after := at(1, RNIC{}), at(2, RNIC{})
	b, a := &before.RNICs[0], &after.RNICs[0]
	b.CQOverflows, a.CQOverflows = 1000, 1000
	a.EventsDropped = 9
	b.EventsDropped = 7
	b.Refused[counters.CauseTLS], a.Refused[counters.CauseTLS] = 50, 50
	a.Failed[counters.CauseRejected] = 1
	b.Terminates = []counters.Terminate{{Layer: 1, Type: 1, Code: 1, Known: true, Remote: true, Count: 4}}
	a.Terminates = []counters.Terminate{{Layer: 1, Type: 1, Code: 1, Known: true, Count: 5}, {Layer: 1, Type: 1, Code: 1, Known: true, Remote: true, Count: 6}, {Remote: true, Count: 2}}
	b.Paths = []counters.Path{{Ended: counters.Ended{counters.Closed: 100, counters.ConnectionLost: 1}}}
	a.Paths = []counters.Path{{Ended: counters.Ended{counters.Closed: 200, counters.ConnectionLost: 2, counters.BadClose: 3}}, {QP: counters.QP{CommitsFailed: 8}}}
	require.Equal(t, []Error{
		{"Terminate sent: DDP tagged buffer: base or bounds violation (1/1/01)", Count{5, 5}},
		{"Terminate received: DDP tagged buffer: base or bounds violation (1/1/01)", Count{6, 2}},
		{"Terminate received: a code that no RFC has", Count{2, 2}},
		{"connections lost", Count{2, 1}},
		{"messages after the end", Count{3, 3}},
		{"set-ups refused: TLS", Count{50, 0}},
		{"set-ups failed: rejected by the application", Count{1, 1}},
		{"Commits of peers that failed", Count{8, 8}},
		{"CQ overflows", Count{1000, 0}},
		{"events dropped", Count{9, 2}},
	}, Compare(before, after, Options{}).Errors)
	for _, name := range causes {
		require.NotEmpty(t, name)
	}
}

// TestOrderOfErrorsStays if an error of one RNIC happens for the first time on another one: otherwise lines of the page would change places.
func TestOrderOfErrorsStays(t *testing.T) {
	two := func(uptime time.Duration, lost uint64, terminates ...counters.Terminate) *State {
		first, second := RNIC{ID: 0}, RNIC{ID: 1}
		first.EventsDropped, first.Terminates = 1, terminates
		first.Paths = []counters.Path{{Ended: counters.Ended{counters.ConnectionLost: lost}}}
		second.Paths = []counters.Path{{Ended: counters.Ended{counters.ConnectionLost: 3}}}
		second.Terminates = []counters.Terminate{{Layer: 1, Type: 1, Code: 1, Known: true, Count: 4}}
		return at(uptime, first, second)
	}
	named := func(v *View) (names []string) {
		for _, e := range v.Errors {
			names = append(names, e.Name)
		}
		return names
	}
	before := two(1, 0, counters.Terminate{Layer: 2, Code: 2, Known: true, Count: 5})
	after := two(2, 1, counters.Terminate{Layer: 1, Type: 1, Code: 1, Known: true, Count: 1}, counters.Terminate{Layer: 2, Code: 2, Known: true, Count: 5})
	require.Equal(t, []string{
		"Terminate sent: DDP tagged buffer: base or bounds violation (1/1/01)", "Terminate sent: MPA: CRC error (2/0/02)", "connections lost", "events dropped",
	}, named(Compare(nil, before, Options{})))
	v := Compare(before, after, Options{})
	require.Equal(t, named(Compare(nil, before, Options{})), named(v))
	require.Equal(t, Count{5, 1}, v.Errors[0].Count)
	require.Equal(t, Count{4, 1}, v.Errors[2].Count)
}

// TestQuantiles of the interval, and of all requests, over all RNICs and paths.
func TestQuantiles(t *testing.T) {
	latency := func(counts map[int]uint64) counters.Path {
		l := counters.Latency{Op: "Send"}
		for i, n := range counts {
			l.Counts[i] = n
		}
		return counters.Path{QP: counters.QP{Path: fmt.Sprint(len(counts))}, Latency: []counters.Latency{l}}
	}
	rnic := func(id int, paths ...counters.Path) RNIC {
		return RNIC{ID: id, RNIC: counters.RNIC{Paths: paths}}
	}
	more := latency(map[int]uint64{0: 1000, 5: 0}) // of another path, where nothing happens
	before := at(0, rnic(0, latency(map[int]uint64{0: 100})), rnic(1))
	after := at(2*time.Second, rnic(0, latency(map[int]uint64{0: 200})), rnic(1, latency(map[int]uint64{1: 98, 3: 2})))
	of := func(s *State) *State { return at(s.Uptime, rnic(0, more, s.RNICs[0].Paths[0])) }
	require.Equal(t, 50.0, Compare(of(before), of(after), Options{}).Latencies[0].PerSec, "each path is compared with itself")
	got := Compare(before, after, Options{}).Latencies
	require.Len(t, got, 1)
	require.Equal(t, "Send", got[0].Op)
	require.EqualValues(t, 300, got[0].Total)
	require.Equal(t, 100.0, got[0].PerSec)
	require.Equal(t, 1024*time.Nanosecond, got[0].P50, "100 of 200 are in the first bucket")
	require.Equal(t, 2048*time.Nanosecond, got[0].P99)
	require.Equal(t, 768*time.Nanosecond, got[0].TotalP50, "150 of 200 are three quarters of a bucket")
	require.Less(t, got[0].TotalP50, got[0].TotalP99)

	var h [counters.Buckets]uint64
	require.Zero(t, quantile(&h, 0.5))
	h[counters.Buckets-1] = 1
	require.Equal(t, counters.Bound(counters.Buckets-2), quantile(&h, 0.5), "the last bucket has no end")
	h = [counters.Buckets]uint64{3: 10}
	require.Equal(t, counters.Bound(2)+(counters.Bound(3)-counters.Bound(2))*99/100, quantile(&h, 0.99))
	require.Zero(t, Compare(after, at(3*time.Second, after.RNICs...), Options{}).Latencies[0].P99, "there was none since")
}

// ids returns the IDs of the Rows.
func ids(v *View) (all []uint64) {
	for _, r := range v.Rows {
		all = append(all, r.ID)
	}
	return all
}

// TestRowsAreInOrder of each column, and in the reverse order.
func TestRowsAreInOrder(t *testing.T) {
	qps := []QP{sends(1, "10.0.0.10:1", 0, 0), sends(2, "10.0.0.9:1", 0, 0), sends(3, "10.0.0.9:2", 0, 0)}
	q := &qps[1]
	q.Local, q.State, q.Path = "127.0.0.1:1", "Closing", "TLS"
	q.Peer = &Peer{ID: "aa", Group: "g", Name: "n"}
	q.Sent.RDMAWrite = counters.Traffic{Messages: 2, Octets: 200}
	q.Received.Send = counters.Traffic{Messages: 3, Octets: 300}
	q.SendQueued, q.RecvQueued, q.ReceiveWaits = 4, 5, 6
	q.TCP = &counters.TCP{RTT: 7, Retransmits: 8}
	for column, want := range map[Column][]uint64{
		"": {2, 1, 3}, ByRate: {2, 1, 3}, "no column": {2, 1, 3},
		ByID: {1, 2, 3}, ByRemote: {2, 3, 1}, ByLocal: {1, 3, 2}, ByPeer: {1, 3, 2}, ByPath: {2, 1, 3}, ByState: {2, 1, 3},
		BySent: {2, 1, 3}, ByReceived: {2, 1, 3}, BySentMessages: {2, 1, 3}, ByReceivedMessages: {2, 1, 3},
		BySendQueue: {2, 1, 3}, ByRecvQueue: {2, 1, 3}, ByRTT: {2, 1, 3}, ByRetransmits: {2, 1, 3}, ByWaits: {2, 1, 3},
	} {
		before, after := at(0, RNIC{}), at(time.Second, RNIC{QPs: qps})
		require.Equal(t, want, ids(Compare(before, after, Options{Sort: column})), column)
		reversed := Compare(before, after, Options{Sort: column, Reverse: true})
		require.Equal(t, want[0] == 2, reversed.Rows[2].ID == 2, column)
	}
	for column := range orders {
		require.True(t, column.Known())
	}
	require.False(t, Column("no column").Known())
}

// TestRowsAreFilteredAndLimited: all words of the filter have to be there, in any text.
func TestRowsAreFilteredAndLimited(t *testing.T) {
	qps := []QP{sends(1, "10.0.0.10:1", 0, 0), sends(2, "10.0.0.9:1", 0, 0), sends(3, "192.0.2.1:2", 0, 0)}
	qps[2].Peer = &Peer{ID: "aa", Name: "Storage"}
	s := at(time.Second, RNIC{QPs: qps})
	for filter, want := range map[string][]uint64{
		"": {1, 2, 3}, " ": {1, 2, 3}, "10.0": {1, 2}, "RAW 9:1": {2}, "storage": {3}, "storage 10.0": nil, "rts tcp": {1, 2, 3}, "\n": {1, 2, 3},
	} {
		v := Compare(nil, s, Options{Filter: filter})
		require.Equal(t, want, ids(v), filter)
		require.Equal(t, len(want), v.Matched)
		require.Equal(t, 3, v.QPs)
	}
	v := Compare(nil, s, Options{Limit: 2})
	require.Equal(t, []uint64{1, 2}, ids(v))
	require.Equal(t, 3, v.Matched)
}

// TestNamesOfPeers in one line.
func TestNamesOfPeers(t *testing.T) {
	for want, p := range map[string]*Peer{"": nil, "aa": {ID: "aa", Group: "g"}, "n": {ID: "aa", Name: "n"}, "g/n": {ID: "aa", Group: "g", Name: "n"}} {
		require.Equal(t, want, (&QP{Peer: p}).PeerText())
	}
}

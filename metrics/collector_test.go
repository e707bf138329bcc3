package metrics

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// TestCollectorTellsWhatRNICsCount, each family of counters from a connection that was used.
func TestCollectorTellsWhatRNICsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cpd := rnictest.Open(t, &iwarp.Config{Latency: true})
		server, spd := rnictest.Open(t, nil)
		qp := rnictest.Pairs(t, 1, client, server, cpd, spd)[0]
		mr, err := spd.RegisterMR(make([]byte, 100), stag.LocalWrite|stag.RemoteRead, nil)
		require.NoError(t, err)
		_, err = qp.Remote(mr.Advertise(0, 100)).ReadAt(make([]byte, 100), 0)
		require.NoError(t, err)
		synctest.Wait()
		c := NewCollector(client, server)
		require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP iwarp_qps Established queue pairs now.
# TYPE iwarp_qps gauge
iwarp_qps{path="pipe",rnic="0"} 1
iwarp_qps{path="pipe",rnic="1"} 1
# HELP iwarp_qps_made_total Queue pairs that were established.
# TYPE iwarp_qps_made_total counter
iwarp_qps_made_total{path="pipe",rnic="0"} 1
iwarp_qps_made_total{path="pipe",rnic="1"} 1
# HELP iwarp_cq_overflows_total Times that a completion queue began to lose completions.
# TYPE iwarp_cq_overflows_total counter
iwarp_cq_overflows_total{rnic="0"} 0
iwarp_cq_overflows_total{rnic="1"} 0
`), "iwarp_qps", "iwarp_qps_made_total", "iwarp_cq_overflows_total"))
		got := gather(t, c)
		require.Equal(t, 100.0, got[`iwarp_payload_bytes_total direction=received kind=read_response path=pipe rnic=0`])
		require.Equal(t, 100.0, got[`iwarp_payload_bytes_total direction=sent kind=read_response path=pipe rnic=1`])
		require.Equal(t, 1.0, got[`iwarp_messages_total direction=sent kind=read_request path=pipe rnic=0`])
		require.Equal(t, 1.0, got[`iwarp_operation_duration_seconds op=rdma_read path=pipe rnic=0`])
		require.NotContains(t, got, `iwarp_operation_duration_seconds op=rdma_read path=pipe rnic=1`, "it does not measure")

		require.NoError(t, qp.Close())
		synctest.Wait()
		got = gather(t, c)
		require.Equal(t, 100.0, got[`iwarp_payload_bytes_total direction=received kind=read_response path=pipe rnic=0`], "counters do not fall")
		require.Equal(t, 1.0, got[`iwarp_qps_ended_total how=closed path=pipe rnic=0`])
		require.Zero(t, got[`iwarp_qps path=pipe rnic=0`])
	})
}

// gather returns all values, and the counts of histograms, by name and labels.
func gather(t testing.TB, c *Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	families, err := r.Gather()
	require.NoError(t, err)
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if h := m.GetHistogram(); h != nil {
				values[name+" sum"] = h.GetSampleSum()
			}
		}
	}
	return values
}

// export returns what is exported for an RNIC with these counters.
func export(t testing.TB, s *counters.RNIC) map[string]float64 {
	t.Helper()
	c := NewCollector()
	c.add("rnic", "0", s, func(o *out, name string) { o.rnic(name, s) })
	return gather(t, c)
}

// notExported are the counters without a metric.
var notExported = []string{"Paths.TCP.RTTVar", "Paths.TCP.Window"}

// TestNoCounterIsForgotten: each number of counters.RNIC changes what is exported.
func TestNoCounterIsForgotten(t *testing.T) {
	counts := func() *counters.RNIC {
		return &counters.RNIC{
			Paths:      []counters.Path{{QP: counters.QP{Path: "raw TCP"}, Latency: []counters.Latency{{Op: "Send"}}}},
			Terminates: []counters.Terminate{{Known: true}},
		}
	}
	zero := export(t, counts())
	for i := range numbers("", reflect.ValueOf(counts()).Elem()) {
		s := counts()
		n := numbers("", reflect.ValueOf(s).Elem())[i]
		if n.value.CanUint() {
			n.value.SetUint(1)
		} else {
			n.value.SetInt(int64(time.Second))
		}
		exported := !maps.Equal(zero, export(t, s))
		require.Equal(t, !slices.Contains(notExported, n.name), exported,
			"%s is exported by out.go, with a metric of table.go; or else it is in notExported", n.name)
	}
}

// A number is a field, with the path of names that leads to it.
type number struct {
	name  string
	value reflect.Value
}

// numbers returns all numbers in v.
func numbers(name string, v reflect.Value) (all []number) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Anonymous {
				all = append(all, numbers(name, v.Field(i))...)
			} else {
				all = append(all, numbers(strings.TrimPrefix(name+"."+f.Name, "."), v.Field(i))...)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			all = append(all, numbers(name, v.Index(i))...)
		}
	default:
		if v.CanInt() || v.CanUint() {
			all = append(all, number{name, v})
		}
	}
	return all
}

// TestEachCounterIsExported, with the value that it has.
func TestEachCounterIsExported(t *testing.T) {
	s := &counters.RNIC{
		Paths: []counters.Path{{
			QP: counters.QP{
				Path: "raw TCP", ReceiveWaits: 1, ReadWaits: 2, ReadWaitTime: 3 * time.Second, CommitsServed: 4, CommitsFailed: 5,
				CommitsNotDurable: 6, SharedTaken: 7, SharedHeld: 8, SendQueued: 9, RecvQueued: 10,
			},
			Live: 11, TCPs: 12, TCP: counters.TCP{RTT: 13 * time.Second, Unacked: 14, Retransmits: 15},
		}},
		CQOverflows: 16, EventsDropped: 17, Pending: 18,
		Refused: counters.Setups{counters.CauseTLS: 19}, Failed: counters.Setups{counters.CauseRejected: 20},
		Terminates: []counters.Terminate{{Layer: 1, Type: 2, Code: 3, Known: true, Count: 21}},
	}
	got := export(t, s)
	for name, want := range map[string]float64{
		"receive_waits_total path=raw TCP rnic=0":                       1,
		"read_waits_total path=raw TCP rnic=0":                          2,
		"read_wait_seconds_total path=raw TCP rnic=0":                   3,
		"commits_served_total path=raw TCP rnic=0":                      4,
		"commits_failed_total path=raw TCP rnic=0":                      5,
		"commit_regions_not_durable_total path=raw TCP rnic=0":          6,
		"srq_receives_taken_total path=raw TCP rnic=0":                  7,
		"srq_receives_held path=raw TCP rnic=0":                         8,
		"queued_work_requests path=raw TCP queue=send rnic=0":           9,
		"queued_work_requests path=raw TCP queue=receive rnic=0":        10,
		"qps path=raw TCP rnic=0":                                       11,
		"tcp_connections path=raw TCP rnic=0":                           12,
		"tcp_rtt_seconds path=raw TCP rnic=0":                           13,
		"tcp_unacked_segments path=raw TCP rnic=0":                      14,
		"tcp_retransmits_total path=raw TCP rnic=0":                     15,
		"cq_overflows_total rnic=0":                                     16,
		"events_dropped_total rnic=0":                                   17,
		"setups_pending rnic=0":                                         18,
		"setups_refused_total cause=tls rnic=0":                         19,
		"setups_failed_total cause=rejected rnic=0":                     20,
		"terminates_total code=03 direction=sent layer=1 rnic=0 type=2": 21,
	} {
		value, there := got["iwarp_"+name]
		require.True(t, there, name)
		require.Equal(t, want, value, name)
	}
}

// TestCodesThatAPeerInventsAreOther, all of them, whatever their numbers are.
func TestCodesThatAPeerInventsAreOther(t *testing.T) {
	got := export(t, &counters.RNIC{Terminates: []counters.Terminate{{Layer: 7, Type: 7, Code: 0x77, Remote: true, Count: 3}}})
	require.Equal(t, 3.0, got["iwarp_terminates_total code=other direction=received layer=other rnic=0 type=other"])
	for name := range got {
		require.NotContains(t, name, "77")
	}
}

// TestConnectionsAddNoSeries: the number of series does not depend on the number of connections, and none contains their
// addresses.
func TestConnectionsAddNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cpd := rnictest.Open(t, nil)
		server, spd := rnictest.Open(t, nil)
		c := NewCollector(client, server)
		rnictest.Pairs(t, 1, client, server, cpd, spd)
		few := gather(t, c)
		qps := rnictest.Pairs(t, 99, client, server, cpd, spd)
		many := gather(t, c)
		require.Len(t, many, len(few))
		require.Equal(t, 100.0, many["iwarp_qps path=pipe rnic=1"])
		for name := range many {
			require.NotContains(t, name, "="+qps[0].RemoteAddr().String())
		}
	})
}

// TestWhatIsAddedHasItsName, and only once.
func TestWhatIsAddedHasItsName(t *testing.T) {
	c := NewCollector()
	s := iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20})
	c.AddSolicitor("reads", s)
	c.AddSolicitor("reads", iwarp.NewSolicitor(solicit.Config{Fixed: 2 << 20}))
	c.AddBacking("log", backing(5))
	r, pd := rnictest.Open(t, nil)
	cq, err := r.CreateCQ(30)
	require.NoError(t, err)
	srq, err := pd.CreateSRQ(40)
	require.NoError(t, err)
	require.NoError(t, srq.PostRecv(make([]iwarp.RecvWR, 7)...))
	c.AddCQ("all", cq)
	c.AddSRQ("all", srq)
	got := gather(t, c)
	require.Contains(t, got, "iwarp_cq_completions name=all")
	require.Equal(t, 30.0, got["iwarp_cq_depth name=all"])
	require.Equal(t, 7.0, got["iwarp_srq_receives name=all"])
	require.Equal(t, 40.0, got["iwarp_srq_depth name=all"])
	require.Equal(t, float64(1<<20), got["iwarp_solicitor_window_bytes name=reads"])
	require.Contains(t, got, "iwarp_solicitor_grants_total class=latency name=reads")
	require.Equal(t, 5.0, got["iwarp_backing_syncs_total name=log"])
}

// TestWhatIsRemovedIsReplaced: an object that is added with the name afterwards is exported, and the removed object is not kept.
func TestWhatIsRemovedIsReplaced(t *testing.T) {
	c := NewCollector()
	r, _ := rnictest.Open(t, nil)
	ended, err := r.CreateCQ(10)
	require.NoError(t, err)
	require.NoError(t, ended.Close())
	next, err := r.CreateCQ(20)
	require.NoError(t, err)
	c.AddCQ("clients", ended)
	c.AddCQ("also", ended)
	c.AddBacking("clients", backing(5))
	c.Remove(next)
	c.AddCQ("clients", next)
	require.Equal(t, 10.0, gather(t, c)["iwarp_cq_depth name=clients"], "the first of a name counts")

	c.Remove(ended)
	c.AddCQ("clients", next)
	got := gather(t, c)
	require.Equal(t, 20.0, got["iwarp_cq_depth name=clients"])
	require.NotContains(t, got, "iwarp_cq_depth name=also")
	require.Equal(t, 5.0, got["iwarp_backing_syncs_total name=clients"], "what else has the name stays")
	require.Len(t, c.added, 2)
}

// TestRemoveOneOfMany: what an object has registered under all its names is removed, and nothing else.
func TestRemoveOneOfMany(t *testing.T) {
	const many = 100
	c := NewCollector()
	for i := range many {
		c.AddBacking("first"+strconv.Itoa(i), backing(i))
		c.AddBacking("second"+strconv.Itoa(i), backing(i))
	}
	for i := range many - 1 {
		c.Remove(backing(i))
	}
	require.Len(t, c.added, 2)
	require.Len(t, c.names, 1)
	require.Equal(t, float64(many-1), gather(t, c)["iwarp_backing_syncs_total name=second"+strconv.Itoa(many-1)])
}

// BenchmarkRemove removes one of 10,000 objects and adds it again.
func BenchmarkRemove(b *testing.B) {
	const many = 10_000
	c := NewCollector()
	for i := range many {
		c.AddBacking(strconv.Itoa(i), backing(i))
	}
	for i := 0; b.Loop(); i = (i + 1) % many {
		c.Remove(backing(i))
		c.AddBacking(strconv.Itoa(i), backing(i))
	}
}

// A sized backing has a type that cannot be compared.
type sized []uint64

func (s sized) Syncs() uint64 { return uint64(len(s)) }

// TestWhatCannotBeComparedIsNotRemoved, as what is not there.
func TestWhatCannotBeComparedIsNotRemoved(t *testing.T) {
	c := NewCollector()
	c.AddBacking("sized", sized{1, 2})
	c.AddBacking("log", backing(5))
	c.Remove(sized{1, 2})
	c.Remove(backing(5))
	require.Equal(t, map[string]float64{"iwarp_backing_syncs_total name=sized": 2}, gather(t, c))
}

// TestNamesNeedNotBeUTF8: names of files, after which a backing may be named, are any octets. Prometheus takes only UTF-8, and
// one metric without it would fail the whole scrape.
func TestNamesNeedNotBeUTF8(t *testing.T) {
	c := NewCollector()
	c.AddBacking("log\xff", backing(5))
	c.AddBacking("log\xfe", backing(6))
	got := gather(t, c)
	require.Equal(t, 5.0, got["iwarp_backing_syncs_total name=log\uFFFD"], "the first of a name counts")
	require.Len(t, got, 1)
}

// A backing has been synced so often.
type backing uint64

func (b backing) Syncs() uint64 { return uint64(b) }

// TestStatsOfWhatIsAdded: each field has its metric.
func TestStatsOfWhatIsAdded(t *testing.T) {
	c := NewCollector()
	c.add("test", "", nil, func(o *out, _ string) {
		o.auth("a", cm.Stats{Accepted: 1, Plain: 24, Connected: 2, Suppressed: 3, HalfOpen: 4, Refused: map[cm.Reason]uint64{cm.ReasonBadMAC: 5}})
		o.server("s", rma.ServerStats{Regions: 6, Connections: 7, ScratchInUse: 8, AuthFailures: 9, Nacks: 10, Expired: 11, Late: 12, LateCommits: 13})
		o.client("c", rma.ClientStats{Timeouts: 14, DispatchTimeouts: 15, Late: 16, Outcomes: [rma.Outcomes]uint64{rma.OK: 17, rma.Closed: 18}})
		o.cq("q", counters.CQ{Waiting: 19, Depth: 20})
		o.srq("s", counters.SRQ{Free: 21, Depth: 22, Posted: 23})
	})
	got := gather(t, c)
	for name, want := range map[string]float64{
		"auth_accepted_total name=a": 1, "auth_connected_total name=a": 2, "auth_log_suppressed_total name=a": 3, "auth_half_open name=a": 4,
		"auth_unauthenticated_total name=a":          24,
		"auth_refused_total name=a reason=wrong_mac": 5, "rma_regions name=s": 6, "rma_connections name=s": 7, "rma_scratch_bytes name=s": 8,
		"rma_auth_failures_total name=s": 9, "rma_nacks_total name=s": 10, "rma_expired_total name=s": 11, "rma_late_total name=s": 12,
		"rma_late_commits_total name=s": 13, "rma_client_timeouts_total name=c stage=answer": 14,
		"rma_client_timeouts_total name=c stage=dispatch": 15, "rma_client_late_total name=c": 16,
		"rma_client_operations_total name=c outcome=done": 17, "rma_client_operations_total name=c outcome=connection_closed": 18,
		"cq_completions name=q": 19, "cq_depth name=q": 20, "srq_receives name=s": 21, "srq_depth name=s": 22, "srq_receives_posted_total name=s": 23,
	} {
		require.Equal(t, want, got["iwarp_"+name], name)
	}
}

// TestNamesFollowTheConventions of Prometheus.
func TestNamesFollowTheConventions(t *testing.T) {
	client, cpd := rnictest.Open(t, nil)
	rnictest.Pairs(t, 1, client, client, cpd, cpd)
	c := NewCollector(client)
	c.add("test", "", nil, func(o *out, _ string) {
		o.auth("a", cm.Stats{})
		o.server("s", rma.ServerStats{})
		o.client("c", rma.ClientStats{})
		o.cq("q", counters.CQ{})
		o.srq("s", counters.SRQ{})
		o.solicitor("w", solicit.Stats{})
		o.count(syncs, 0, "b")
		o.terminates("1", counters.Terminate{})
		o.latency("1", "pipe", &counters.Latency{Op: "Send"})
	})
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
	exported := map[string]bool{}
	for name := range gather(t, c) {
		name, _, _ = strings.Cut(name, " ")
		exported[strings.TrimSuffix(name, "_total")] = true // the name of the family in OpenMetrics
	}
	require.Len(t, exported, len(all), "each metric is exported, in a family of its own")
}

// BenchmarkScrape scrapes 10,000 queue pairs.
func BenchmarkScrape(b *testing.B) {
	r, pd := rnictest.Open(b, &iwarp.Config{Latency: true})
	rnictest.Pairs(b, 5000, r, r, pd, pd)
	registry := prometheus.NewRegistry()
	require.NoError(b, registry.Register(NewCollector(r)))
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

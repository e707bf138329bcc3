package metrics

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

// out takes the values of one scrape.
type out struct{ to chan<- prometheus.Metric }

func (o *out) value(m *metric, v float64, labels ...string) {
	kind := prometheus.GaugeValue
	if m.kind == counter {
		kind = prometheus.CounterValue
	}
	o.to <- prometheus.MustNewConstMetric(m.desc, kind, v, labels...)
}

func (o *out) count(m *metric, n uint64, labels ...string) { o.value(m, float64(n), labels...) }
func (o *out) now(m *metric, n int, labels ...string)      { o.value(m, float64(n), labels...) }

// rnic exports one RNIC.
func (o *out) rnic(rnic string, s *counters.RNIC) {
	for i := range s.Paths {
		o.path(rnic, &s.Paths[i])
	}
	for _, t := range s.Terminates {
		o.terminates(rnic, t)
	}
	o.count(cqOverflows, s.CQOverflows, rnic)
	o.count(eventsDropped, s.EventsDropped, rnic)
	o.now(setupsPending, s.Pending, rnic)
	for c := range counters.Cause(counters.Causes) {
		o.count(setupsRefused, s.Refused[c], rnic, c.String())
		o.count(setupsFailed, s.Failed[c], rnic, c.String())
	}
}

// terminates exports the count of one code. Codes that no RFC defines do not become labels.
func (o *out) terminates(rnic string, t counters.Terminate) {
	direction, layer, typ, code := "sent", "other", "other", "other"
	if t.Remote {
		direction = "received"
	}
	if t.Known {
		layer, typ, code = strconv.Itoa(int(t.Layer)), strconv.Itoa(int(t.Type)), fmt.Sprintf("%02x", t.Code)
	}
	o.count(terminates, t.Count, rnic, direction, layer, typ, code)
}

// path exports the QPs with one path.
func (o *out) path(rnic string, p *counters.Path) {
	o.now(qps, p.Live, rnic, p.Path)
	o.count(qpsMade, p.Made, rnic, p.Path)
	for how := range counters.End(counters.Ends) {
		o.count(qpsEnded, p.Ended[how], rnic, p.Path, how.String())
	}
	o.direction(rnic, p.Path, "sent", &p.Sent)
	o.direction(rnic, p.Path, "received", &p.Received)
	for i := range p.Latency {
		o.latency(rnic, p.Path, &p.Latency[i])
	}
	o.now(queued, p.SendQueued, rnic, p.Path, "send")
	o.now(queued, p.RecvQueued, rnic, p.Path, "receive")
	o.count(receiveWaits, p.ReceiveWaits, rnic, p.Path)
	o.count(sharedTaken, p.SharedTaken, rnic, p.Path)
	o.now(sharedHeld, p.SharedHeld, rnic, p.Path)
	o.count(readWaits, p.ReadWaits, rnic, p.Path)
	o.value(readWaitTime, p.ReadWaitTime.Seconds(), rnic, p.Path)
	o.count(commits, p.CommitsServed, rnic, p.Path)
	o.count(commitsFailed, p.CommitsFailed, rnic, p.Path)
	o.count(notDurable, p.CommitsNotDurable, rnic, p.Path)
	o.now(tcpConnections, p.TCPs, rnic, p.Path)
	o.value(tcpRTT, p.TCP.RTT.Seconds(), rnic, p.Path)
	o.count(tcpUnacked, p.TCP.Unacked, rnic, p.Path)
	o.count(tcpRetransmits, p.TCP.Retransmits, rnic, p.Path)
}

func (o *out) direction(rnic, path, direction string, ops *counters.Ops) {
	for kind, n := range ops.All {
		o.count(messages, n.Messages, rnic, path, direction, kind)
		o.count(payload, n.Octets, rnic, path, direction, kind)
	}
}

func (o *out) latency(rnic, path string, l *counters.Latency) {
	buckets := make(map[float64]uint64, counters.Buckets-1)
	var n uint64
	for i, c := range l.Counts {
		n += c
		if i < counters.Buckets-1 {
			buckets[counters.Bound(i).Seconds()] = n
		}
	}
	o.to <- prometheus.MustNewConstHistogram(duration.desc, n, l.Sum.Seconds(), buckets, rnic, path, label(l.Op))
}

// label returns a text of the library as the value of a label: in lower case, words joined by underscores.
func label(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }), "_")
}

func (o *out) auth(name string, s cm.Stats) {
	o.count(authAccepted, s.Accepted, name)
	o.count(authPlain, s.Plain, name)
	o.count(authConnected, s.Connected, name)
	o.count(authSuppressed, s.Suppressed, name)
	o.now(authHalfOpen, s.HalfOpen, name)
	for r := cm.ReasonSourceClosed; r <= cm.ReasonNotJudged; r++ {
		o.count(authRefused, s.Refused[r], name, label(r.String()))
	}
}

func (o *out) server(name string, s rma.ServerStats) {
	o.now(rmaRegions, s.Regions, name)
	o.now(rmaConnections, s.Connections, name)
	o.now(rmaScratch, s.ScratchInUse, name)
	o.count(rmaAuthFailures, s.AuthFailures, name)
	o.count(rmaNacks, s.Nacks, name)
	o.count(rmaExpired, s.Expired, name)
	o.count(rmaLate, s.Late, name)
	o.count(rmaLateCommits, s.LateCommits, name)
}

func (o *out) cq(name string, s counters.CQ) {
	o.now(cqWaiting, s.Waiting, name)
	o.now(cqDepth, s.Depth, name)
}

func (o *out) srq(name string, s counters.SRQ) {
	o.now(srqFree, s.Free, name)
	o.now(srqDepth, s.Depth, name)
	o.count(srqPosted, s.Posted, name)
}

func (o *out) client(name string, s rma.ClientStats) {
	for outcome := range rma.Outcome(rma.Outcomes) {
		o.count(rmaOutcomes, s.Outcomes[outcome], name, label(outcome.String()))
	}
	o.count(rmaTimeouts, s.Timeouts, name, "answer")
	o.count(rmaTimeouts, s.DispatchTimeouts, name, "dispatch")
	o.count(rmaClientLate, s.Late, name)
}

func (o *out) solicitor(name string, s solicit.Stats) {
	o.value(windowLimit, float64(s.Limit), name)
	o.value(windowGranted, float64(s.Granted), name)
	o.now(windowQueued, s.Queued, name)
	o.count(windowExpired, s.Expired, name)
	for class, label := range [...]string{solicit.Latency: "latency", solicit.Bulk: "bulk"} {
		o.count(windowGrants, s.Grants[class], name, label)
		o.count(windowOctets, s.Octets[class], name, label)
	}
}

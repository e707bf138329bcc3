package monitor

import (
	"cmp"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/counters"
)

// histograms holds the histograms of each operation, over all RNICs and paths.
type histograms struct{ ops []operation }

type operation struct {
	name          string
	recent, total [counters.Buckets]uint64
}

// add adds the operations of an RNIC.
func (h *histograms) add(before, after *RNIC) {
	for i := range after.Paths {
		for j := range after.Paths[i].Latency {
			now := &after.Paths[i].Latency[j]
			h.operation(now.Op).add(latencyBefore(before, after.Paths[i].Path, now.Op), now)
		}
	}
}

func (h *histograms) operation(name string) *operation {
	for i := range h.ops {
		if h.ops[i].name == name {
			return &h.ops[i]
		}
	}
	h.ops = append(h.ops, operation{name: name})
	return &h.ops[len(h.ops)-1]
}

func (o *operation) add(before, now *counters.Latency) {
	for i, n := range now.Counts {
		o.total[i] += n
		o.recent[i] += since(before.Counts[i], n)
	}
}

// latencyBefore returns the earlier counts of an operation on a path.
func latencyBefore(r *RNIC, path, op string) *counters.Latency {
	for i := range r.Paths {
		for j := range r.Paths[i].Latency {
			if l := &r.Paths[i].Latency[j]; r.Paths[i].Path == path && l.Op == op {
				return l
			}
		}
	}
	return &counters.Latency{}
}

// quantiles returns the latencies of all operations, by name.
func (h *histograms) quantiles(seconds float64) (all []Latency) {
	for i := range h.ops {
		o := &h.ops[i]
		l := Latency{
			Op: o.name, PerSec: float64(count(&o.recent)) / seconds, Total: count(&o.total),
			P50: quantile(&o.recent, 0.5), P99: quantile(&o.recent, 0.99),
			TotalP50: quantile(&o.total, 0.5), TotalP99: quantile(&o.total, 0.99),
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Latency) int { return cmp.Compare(a.Op, b.Op) })
	return all
}

func count(h *[counters.Buckets]uint64) (n uint64) {
	for _, c := range h {
		n += c
	}
	return n
}

// quantile returns the duration that a share q of the durations in h do not exceed. Within a bucket they are taken as evenly
// distributed, as Prometheus does. In the last bucket, which has no end, the result is its beginning. It is 0 if h is empty.
func quantile(h *[counters.Buckets]uint64, q float64) time.Duration {
	rank := q * float64(count(h))
	if rank == 0 {
		return 0
	}
	var below float64
	for i, c := range h[:counters.Buckets-1] {
		if next := below + float64(c); next < rank || c == 0 {
			below = next
			continue
		}
		from := time.Duration(0)
		if i > 0 {
			from = counters.Bound(i - 1)
		}
		return from + time.Duration(float64(counters.Bound(i)-from)*(rank-below)/float64(c))
	}
	return counters.Bound(counters.Buckets - 2)
}

package perf

import (
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A sample is one run.
type sample struct {
	ops, octets int
	elapsed     time.Duration
	used        peer.Usage // by both processes
	times       []int64    // sorted; empty unless the workload is about latency
}

// A metric is a value that is taken from a sample.
type metric struct {
	name, unit string
	of         func(s *sample) float64
}

var (
	throughput = metric{"throughput", "GB/s", func(s *sample) float64 { return float64(s.octets) / s.elapsed.Seconds() / 1e9 }}
	rate       = metric{"rate", "Mops/s", func(s *sample) float64 { return float64(s.ops) / s.elapsed.Seconds() / 1e6 }}
	cpu        = metric{"cpu", "s/GB", func(s *sample) float64 { return s.used.CPU.Seconds() / (float64(s.octets) / 1e9) }}
	allocs     = metric{"allocs", "1/op", func(s *sample) float64 { return float64(s.used.Mallocs) / float64(s.ops) }}
	p50        = metric{"p50", "us", percentile(0.50)}
	p99        = metric{"p99", "us", percentile(0.99)}
	p999       = metric{"p99.9", "us", percentile(0.999)}
)

// percentile returns a metric: the time, in microseconds, within which a share q of the
// operations was done.
func percentile(q float64) func(s *sample) float64 {
	return func(s *sample) float64 {
		if len(s.times) == 0 {
			return 0
		}
		return float64(s.times[int(q*float64(len(s.times)-1)+0.5)]) / 1e3
	}
}

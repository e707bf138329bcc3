package perf

import "github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"

// An idleCase measures the cost of idle connections: memory, and the speed
// of a busy connection beside them.
//
// All connections are in two processes, so the busy connection cannot be measured with and
// without the others in turn. It is compared with TCP before they exist, and again
// while they exist, and the two ratios are compared with each other.
type idleCase struct {
	idle  int
	rss   float64 // KiB of one connection, at most
	ratio float64 // speed with the idle connections to speed without, at least
}

var idleMemory = metric{name: "rss", unit: "KiB/QP"}

func (c *idleCase) cases() []goal {
	return []goal{
		valueAtMost("idle_10k", idleMemory, c.rss),
		ratioAtLeast("idle_10k", throughput, c.ratio),
		valueAtMost("allocs_idle_10k", allocs, noAllocs),
	}
}

func (c *idleCase) measure(p pairing, r *remote, cc string) ([]row, error) {
	busy := workload{Kind: "iwarp", Op: opRead, Size: 64 * kib, Shared: true, Depth: 16, CRC: true, CC: cc}
	tcp := busy
	tcp.Kind, tcp.Chunk = "tcp", 256*kib // a reference need not be the best
	without, err := p.compare(r, busy, &tcp)
	if err != nil {
		return nil, err
	}
	before, err := bothMemories(r)
	if err != nil {
		return nil, err
	}
	busy.Idle = c.idle
	a, err := openArm(r, busy, p.span)
	if err != nil {
		return nil, err
	}
	defer a.close() //nolint:errcheck // the samples are taken
	after, err := bothMemories(r)
	if err != nil {
		return nil, err
	}
	b, err := openArm(r, tcp, p.span)
	if err != nil {
		return nil, err
	}
	defer b.close() //nolint:errcheck // the samples are taken
	beside, err := p.alternate(a, b)
	if err != nil {
		return nil, err
	}
	return []row{
		memoryRow("idle_10k", before, after, c.idle),
		relativeRow("idle_10k", throughput, alone, beside, without),
		summarize("allocs_idle_10k", allocs, "tcp", beside),
	}, nil
}

// bothMemories returns the memory of this process and that of the server.
func bothMemories(r *remote) ([2]peer.Memory, error) {
	a, err := r.do(request{Memory: true})
	return [2]peer.Memory{peer.KeptMemory(), a.Memory}, err
}

// memoryRow returns the growth of the process that grew more, for each of n connections.
func memoryRow(name string, before, after [2]peer.Memory, n int) row {
	var most float64
	for i := range before {
		most = max(most, (float64(after[i].RSS)-float64(before[i].RSS))/kib/float64(n))
	}
	return row{Case: name, Metric: idleMemory.name, Unit: idleMemory.unit, Value: &most, Pairs: 1}
}

// relativeRow compares two series of pairs that have the same baseline.
func relativeRow(name string, m metric, against string, pairs, others []pair) row {
	r := summarize(name, m, against, pairs)
	o := summarize(name, m, against, others)
	r.BaselineValue = o.Value
	if r.Ratio != nil && o.Ratio != nil {
		q := *r.Ratio / *o.Ratio
		r.Ratio = &q
	}
	return r
}

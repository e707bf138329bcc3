package nvmeperf

import (
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

const (
	// leastOfRPC is the smallest permitted part of the rate of the same messages without NVMe.
	leastOfRPC = 0.8
	memoryDisk = "mem:64MiB"
	// entries is the size of an I/O queue, which is one more than it has commands outstanding.
	entries = depth + 1
	// longRun is how many times as long a run of large commands takes: otherwise a tenth of its commands would be at its
	// beginning and its end, with fewer than depth outstanding.
	longRun = 2
	// manyStands is the number of stands on which large commands are measured: their rate differs more from one pair of processes to
	// another than from run to run.
	manyStands = 5
)

// A rivalry compares commands of NVMe with operations without NVMe.
type rivalry struct {
	what  string
	does  command
	kinds []rpc.Kind // of the operations
	size  int
	opts  host.Options
	mark  bool // the comparison has a mark

	times  int // how many times as long as others a run takes
	stands int
}

// The data of a write of 4 KiB is in the capsule unless the host is told otherwise. That case has no mark: it shows the cost of
// the RDMA Read that larger writes have.
var (
	randomRead   = rivalry{"4 KiB random reads", readBlock, []rpc.Kind{rpc.Get}, 4 * kib, host.Options{QueueSize: entries}, true, 1, 1}
	randomInside = rivalry{"4 KiB random writes", writeBlock, []rpc.Kind{rpc.Put, rpc.PutInside}, 4 * kib, host.Options{QueueSize: entries}, true, 1, 1}
	randomKeyed  = rivalry{"4 KiB random writes, none in capsules", writeBlock, []rpc.Kind{rpc.Put}, 4 * kib, host.Options{QueueSize: entries, NoInCapsule: true}, false, 1, 1}
	largeRead    = rivalry{"1 MiB reads", readBlock, []rpc.Kind{rpc.Get}, mib, host.Options{QueueSize: entries}, true, longRun, manyStands}
	largeWrite   = rivalry{"1 MiB writes", writeBlock, []rpc.Kind{rpc.Put}, mib, host.Options{QueueSize: entries}, true, longRun, manyStands}
)

// ops are the names of operations in iwarp perf -op.
var ops = map[rpc.Kind]string{rpc.Get: "rpc", rpc.Put: "rpcwrite", rpc.PutInside: "rpcsend"}

func (b *bench) reads() error      { return b.rivals(randomRead) }
func (b *bench) writes() error     { return b.rivals(randomInside) }
func (b *bench) keyed() error      { return b.rivals(randomKeyed) }
func (b *bench) throughput() error { return b.rivals(largeRead, largeWrite) }

// rivals compares the rate of commands with that of operations without NVMe.
func (b *bench) rivals(all ...rivalry) error {
	for _, r := range all {
		sides, err := b.sides(&r)
		if err != nil {
			return err
		}
		b.tell(sides...)
		b.judge(&r, sides)
	}
	return nil
}

// sides returns the contenders of a rivalry with the samples of all stands: operations without NVMe, Transfers and blocking calls.
func (b *bench) sides(r *rivalry) (all []*contest.Contender, err error) {
	for range r.stands {
		err := b.on(func(s *stand) error {
			sides, err := s.sides(r)
			if err != nil {
				return err
			}
			for i, c := range all {
				sides[i].Samples = append(sides[i].Samples, c.Samples...)
			}
			all = sides
			return b.contest(r.times, all...)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *stand) sides(r *rivalry) (all []*contest.Contender, err error) {
	for _, k := range r.kinds {
		c, err := s.calls(r, k)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	blocking, commands, err := s.commands(r)
	if err != nil {
		return nil, err
	}
	return append(all, commands, blocking), nil
}

func (b *bench) judge(r *rivalry, sides []*contest.Contender) {
	commands, blocking := sides[len(r.kinds)], sides[len(r.kinds)+1]
	for i, k := range r.kinds {
		against := ", against perf -op " + ops[k]
		if ratio := commands.Against(sides[i], contest.PerSecond); r.mark {
			b.Marks.Least(r.what+against, ratio, leastOfRPC)
		} else {
			b.Note("%s%s: %.2f", commands.Name, against, ratio)
		}
		b.Note("%s%s: %.2f", blocking.Name, against, blocking.Against(sides[i], contest.PerSecond))
	}
}

// calls returns a contender without NVMe.
func (s *stand) calls(r *rivalry, k rpc.Kind) (*contest.Contender, error) {
	c, err := s.caller(rpc.Shape{Kind: k, Size: r.size, Region: diskSize, Depth: depth, CRC: s.b.opts.CRC})
	if err != nil {
		return nil, err
	}
	return &contest.Contender{Name: fmt.Sprintf("%s as messages (%s), %d under way", r.what, ops[k], depth), Size: r.size, Run: c.Run}, nil
}

// commands returns the contenders with NVMe: with a goroutine for each command, and without.
func (s *stand) commands(r *rivalry) (calls, transfers *contest.Contender, err error) {
	a, err := s.open(&service{Disk: memoryDisk})
	if err != nil {
		return nil, nil, err
	}
	c, err := s.connect(a.Addr, r.opts)
	if err != nil {
		return nil, nil, err
	}
	if err := c.fill(s.b.ctx); err != nil {
		return nil, nil, err
	}
	calls = &contest.Contender{Name: fmt.Sprintf("%s by %d goroutines", r.what, depth), Size: r.size, Run: c.workers(r.does, r.size, depth).run}
	transfers = &contest.Contender{Name: fmt.Sprintf("%s by Transfers, %d under way", r.what, depth), Size: r.size, Run: c.transfers(r.kinds[0] != rpc.Get, r.size, depth).run}
	return calls, transfers, nil
}

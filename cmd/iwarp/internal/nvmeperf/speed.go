package nvmeperf

import (
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

const (
	// leastOfRPC is the least part of the rate of the same messages without NVMe.
	leastOfRPC = 0.8
	memoryDisk = "mem:64MiB"
	// entries is the size of an I/O queue, which is one more than it has commands outstanding.
	entries = depth + 1
)

// A pair is commands of NVMe and the same messages without.
type pair struct {
	what string
	does command
	kind rpc.Kind
	size int
	opts host.Options
}

var (
	randomRead   = pair{"4 KiB random reads", readBlock, rpc.Get, 4 * kib, host.Options{QueueSize: entries}}
	randomInside = pair{"4 KiB random writes in capsules", writeBlock, rpc.PutInside, 4 * kib, host.Options{QueueSize: entries}}
	randomWrite  = pair{"4 KiB random writes, keyed", writeBlock, rpc.Put, 4 * kib, host.Options{QueueSize: entries, NoInCapsule: true}}
	largeRead    = pair{"1 MiB reads", readBlock, rpc.Get, mib, host.Options{QueueSize: entries}}
	largeWrite   = pair{"1 MiB writes", writeBlock, rpc.Put, mib, host.Options{QueueSize: entries}}
)

func (b *bench) reads() error      { return b.pairs(randomRead) }
func (b *bench) writes() error     { return b.pairs(randomInside) }
func (b *bench) keyed() error      { return b.pairs(randomWrite) }
func (b *bench) throughput() error { return b.pairs(largeRead, largeWrite) }

// pairs holds the rate of commands against that of the same messages without NVMe.
func (b *bench) pairs(all ...pair) error {
	for _, p := range all {
		err := b.on(func(s *stand) error {
			calls, err := s.calls(&p)
			if err != nil {
				return err
			}
			blocking, commands, err := s.commands(&p)
			if err != nil {
				return err
			}
			if err := b.compare(calls, commands, blocking); err != nil {
				return err
			}
			b.Marks.Least(p.what+", against perf rpc", commands.Against(calls, contest.PerSecond), leastOfRPC)
			b.Note("%s, against perf rpc: %.2f", blocking.Name, blocking.Against(calls, contest.PerSecond))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// calls is the side without NVMe.
func (s *stand) calls(p *pair) (*contest.Contender, error) {
	c, err := s.caller(rpc.Shape{Kind: p.kind, Size: p.size, Region: diskSize, Depth: depth, CRC: s.b.opts.CRC})
	if err != nil {
		return nil, err
	}
	return &contest.Contender{Name: fmt.Sprintf("%s as messages (%s), %d under way", p.what, p.kind, depth), Size: p.size, Run: c.Run}, nil
}

// commands are the sides of NVMe: with a goroutine for each command, and without.
func (s *stand) commands(p *pair) (calls, transfers *contest.Contender, err error) {
	a, err := s.open(&service{Disk: memoryDisk, CRC: s.b.opts.CRC})
	if err != nil {
		return nil, nil, err
	}
	c, err := s.connect(a.Addr, p.opts)
	if err != nil {
		return nil, nil, err
	}
	if err := c.fill(s.b.ctx); err != nil {
		return nil, nil, err
	}
	calls = &contest.Contender{Name: fmt.Sprintf("%s by %d goroutines", p.what, depth), Size: p.size, Run: c.workers(p.does, p.size, depth).run}
	transfers = &contest.Contender{Name: fmt.Sprintf("%s by Transfers, %d under way", p.what, depth), Size: p.size, Run: c.transfers(p.kind != rpc.Get, p.size, depth).run}
	return calls, transfers, nil
}

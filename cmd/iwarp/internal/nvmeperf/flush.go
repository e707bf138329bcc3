package nvmeperf

import (
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/commitperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// leastOfPull is the smallest permitted part of the rate of the pull model of "iwarp perf commit".
const leastOfPull = 0.9

// flushes compares writes to a file that are made durable one by one with the pull model of "iwarp perf commit", which does
// the same with a message, an RDMA Read, a sync and an answer. Each writer has a block of its own.
func (b *bench) flushes() error {
	return b.on(func(s *stand) error {
		pulls, err := s.pulls()
		if err != nil {
			return err
		}
		file, err := b.file("disk")
		if err != nil {
			return err
		}
		a, err := s.open(&service{Disk: fmt.Sprintf("file:%s,size=%d", file, depth*commitperf.PullSize)})
		if err != nil {
			return err
		}
		c, err := s.connect(a.Addr, host.Options{})
		if err != nil {
			return err
		}
		durable := func(name string, does command) *contest.Contender {
			w := c.workers(does, commitperf.PullSize, depth)
			w.apart = true
			return &contest.Contender{Name: fmt.Sprintf("%s, %d under way", name, depth), Size: commitperf.PullSize, Run: w.run}
		}
		flushed, through := durable("4 KiB write and Flush", writeAndFlush), durable("4 KiB write with FUA", writeThrough)
		if err := b.compare(pulls, flushed, through); err != nil {
			return err
		}
		b.Marks.Least("4 KiB writes with a Flush each, against the pull model of perf commit", flushed.Against(pulls, contest.PerSecond), leastOfPull)
		b.Note("4 KiB writes with FUA, against the pull model: %.2f", through.Against(pulls, contest.PerSecond))
		return nil
	})
}

// pulls returns the contender that is "iwarp perf commit".
func (s *stand) pulls() (*contest.Contender, error) {
	if _, err := s.b.file(""); err != nil {
		return nil, err
	}
	p, err := commitperf.OpenPulls(s.b.ctx, s.b.dir, depth, s.b.opts.cc, s.b.stderr)
	if err != nil {
		return nil, err
	}
	s.later(p.Close)
	name := fmt.Sprintf("4 KiB pulled and made durable, %d connections", depth)
	return &contest.Contender{Name: name, Size: commitperf.PullSize, Run: p.Run}, nil
}

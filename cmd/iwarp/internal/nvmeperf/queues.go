package nvmeperf

import (
	"fmt"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// queueCounts are the numbers of I/O queues that are compared.
var queueCounts = []int{1, 2, 4}

// queues compares numbers of I/O queues, with the same number of commands outstanding on each queue. It has no mark.
func (b *bench) queues() error {
	return b.on(func(s *stand) error {
		a, err := s.open(&service{Disk: memoryDisk})
		if err != nil {
			return err
		}
		var all []*contest.Contender
		for _, n := range queueCounts {
			c, err := s.connect(a.Addr, host.Options{Queues: n, QueueSize: entries})
			if err != nil {
				return err
			}
			if err := c.fill(b.ctx); err != nil {
				return err
			}
			for _, r := range []rivalry{randomRead, randomInside} {
				name := fmt.Sprintf("%s, I/O queues: %d, %d commands under way", r.what, n, n*depth)
				all = append(all, &contest.Contender{Name: name, Size: r.size, Run: c.workers(r.does, r.size, n*depth).run})
			}
		}
		if err := b.compare(all...); err != nil {
			return err
		}
		for i, c := range all[2:] {
			b.Note("%s, against one queue: %.2f", c.Name, c.Against(all[i%2], contest.PerSecond))
		}
		return nil
	})
}

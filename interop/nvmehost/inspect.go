package nvmehost

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// inspect reports the target's subsystems, and its first namespace with each number of queues.
func inspect(ctx context.Context, j *Job) error {
	entries, err := host.Discover(ctx, j.Addr, j.options(1))
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	for _, e := range entries {
		j.say("entry %s %s:%s", e.SubNQN, e.TRADDR, e.TRSVCID)
	}
	for _, queues := range []int{1, 4} {
		c, n, err := j.open(ctx, queues)
		if err != nil {
			return fmt.Errorf("%d queues: %w", queues, err)
		}
		have, depth := c.Queues()
		uuid, nguid := n.UUID(), n.NGUID()
		j.say("namespace %d size %d block %d uuid %x nguid %x queues %d depth %d", n.NSID(), n.Size(), n.BlockSize(), uuid, nguid, have, depth)
		if err := c.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	return nil
}

package target

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEndQueue: one queue ends, and the others go on.
func TestEndQueue(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(2)
		for nqn, qid := range map[string]uint16{hostNQN: 3, "nqn.2026-11.org.example:other": 1} {
			require.Zero(t, w.target.EndQueue(nqn, qid))
		}
		require.Equal(t, 1, w.target.EndQueue(hostNQN, 2))
		time.Sleep(time.Second)
		require.Equal(t, 2, w.target.Stats().Queues)
		p := pattern(lba, 1)
		require.True(t, s.io[0].write(0, p).Status.OK())
		require.Equal(t, 1, w.target.EndQueue(hostNQN, 0))
		time.Sleep(time.Second)
		require.Zero(t, w.target.Stats().Queues, "without its admin queue the controller ends")
	})
}

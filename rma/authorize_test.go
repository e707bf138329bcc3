package rma

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestRMA_9_AuthorizeIsAskedAtEachOpen: with all the rights that the client requests. An answer without that call would reveal, by its
// time, that the region or the right does not exist.
func TestRMA_9_AuthorizeIsAskedAtEachOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type question struct {
			region uint64
			ops    Ops
		}
		var asked []question
		const judging = 3 * time.Millisecond
		w := start(t, plan{server: ServerConfig{Authorize: func(_ iwarp.Peer, region uint64, ops Ops) Ops {
			asked = append(asked, question{region, ops})
			time.Sleep(judging)
			if region == 4 {
				return 0
			}
			return ops
		}}})
		for _, id := range []uint64{2, 4} {
			_, err := w.server.Register(id, NewMemory(make([]byte, 64)), &RegionOptions{Ops: MayRead})
			require.NoError(t, err)
		}
		for _, c := range []struct {
			name string
			question
		}{
			{"it is unknown", question{3, MayRead}},
			{"it has no such right", question{2, MayWrite}},
			{"the client may not", question{4, MayRead | MayWrite}},
		} {
			asked = nil
			begin := time.Now()
			_, err := w.client.Open(w.context(), c.region, c.ops)
			require.ErrorIs(t, err, ErrRemoteAuth, c.name)
			require.Equal(t, judging, time.Since(begin), c.name)
			require.Equal(t, []question{c.question}, asked, c.name)
		}
		h, err := w.client.Open(w.context(), 2, MayRead|MayWrite)
		require.NoError(t, err)
		require.Equal(t, MayRead, h.Ops(), "no more than the region has")
	})
}

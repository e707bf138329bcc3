package target

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_83_NotPosted: the connection ends while a goroutine posts, and other goroutines have left work requests in
// the outbox. Neither the receive of an answered command is lost, nor the buffer of a command whose data was to be read.
func TestNVME_83_NotPosted(t *testing.T) {
	for name, cfg := range map[string]*Config{"plain receives": nil, "an SRQ": {SRQ: 256}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				w := newWorld(t, "pipe", cfg, nil)
				before := w.remains(t)
				s := newHost(t, w.addr).connect(1)
				host, q := s.io[0], w.queue(1)
				posts := func(is bool) {
					q.mu.Lock()
					defer q.mu.Unlock()
					q.posting = is
					q.posts.Broadcast()
				}
				synctest.Wait() // the response to Connect is posted
				posts(true)
				host.send(capsule.FlushSQE(0, 1))
				host.send(rw(capsule.OpWrite, 1, 1, host.readable(pattern(lba, 1))))
				synctest.Wait()
				require.Equal(t, 1, q.outstanding())
				require.NoError(t, host.qp.Abort())
				require.NoError(t, s.admin.qp.Abort())
				synctest.Wait()
				require.NotZero(t, w.target.Stats().Memory, "the queue waits for the goroutine that posts")
				posts(false)
				w.settled()
				require.Equal(t, before, w.remains(t))
			})
		})
	}
}

package iwarp_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestPostsMeetClose: what is posted before Close is done, what is posted after it is refused,
// and the end is a graceful one.
func TestPostsMeetClose(t *testing.T) {
	for range 100 {
		client, server := connect(t, pairConfig{})
		var posts sync.WaitGroup
		for range 4 {
			posts.Go(func() {
				for {
					err := client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled})
					if err != nil && !errors.Is(err, iwarp.ErrQueueFull) {
						return
					}
				}
			})
		}
		require.NoError(t, client.qp.Close())
		posts.Wait()
		require.NoError(t, client.qp.Err())
		require.Zero(t, client.qp.SendCQ().Poll(make([]iwarp.WC, 1)), "nothing that was taken is flushed")
		<-server.qp.Done()
		require.NoError(t, server.qp.Err())
	}
}

package iwarp

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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
					err := client.qp.PostSend(SendWR{Op: OpRDMAWrite, Flags: Unsignaled})
					if err != nil && !errors.Is(err, ErrQueueFull) {
						return
					}
				}
			})
		}
		require.NoError(t, client.qp.Close())
		posts.Wait()
		require.NoError(t, client.qp.Err())
		require.Zero(t, client.qp.SendCQ().Poll(make([]WC, 1)), "nothing that was taken is flushed")
		<-server.qp.Done()
		require.NoError(t, server.qp.Err())
	}
}

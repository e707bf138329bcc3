package iwarp_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// posters is the number of goroutines that use one QP.
var posters = []int{1, 4, 16}

// inParallel runs f in n goroutines, b.N times in total.
func inParallel(b *testing.B, n int, f func(worker int) error) {
	var wg sync.WaitGroup
	for i := range n {
		share := b.N / n
		if i < b.N%n {
			share++
		}
		wg.Go(func() {
			for range share {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkPostersBesideAReceiver: goroutines that write 64 octets each, on a QP that receives
// RDMA Writes of 256 KiB all the time.
func BenchmarkPostersBesideAReceiver(b *testing.B) {
	for _, n := range posters {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			client, server, cmem, smem := benchPair(b, iwarp.MPAOptions{})
			ctx, cancel := context.WithCancel(context.Background())
			var flood sync.WaitGroup
			flood.Go(func() {
				for ctx.Err() == nil {
					if server.RDMAWrite(ctx, cmem.Advertise(0, 256<<10), smem.Slice(0, 256<<10)) != nil {
						return
					}
				}
			})
			at := smem.Advertise(0, 64)
			b.ReportAllocs()
			b.ResetTimer()
			inParallel(b, n, func(worker int) error {
				return client.RDMAWrite(ctx, at, cmem.Slice(512<<10+worker*64, 64))
			})
			b.StopTimer()
			cancel()
			flood.Wait()
		})
	}
}

// BenchmarkReadersOfOneQP: goroutines that each Read 4 KiB and wait for it, on one QP.
func BenchmarkReadersOfOneQP(b *testing.B) {
	for _, n := range posters {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			client, _, cmem, smem := benchPair(b, iwarp.MPAOptions{})
			at := smem.Advertise(0, 4<<10)
			b.ReportAllocs()
			b.ResetTimer()
			inParallel(b, n, func(worker int) error {
				return client.RDMARead(context.Background(), cmem.Slice(worker*4<<10, 4<<10), at)
			})
		})
	}
}

// BenchmarkReadBesideARareWaiter: the Reads of a peer of a QP on which a goroutine waits for a
// Send every millisecond.
func BenchmarkReadBesideARareWaiter(b *testing.B) {
	client, server, cmem, smem := benchPair(b, iwarp.MPAOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	var waiter sync.WaitGroup
	waiter.Go(func() {
		for ctx.Err() == nil {
			if server.Send(ctx) != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	waiter.Go(func() {
		for ctx.Err() == nil {
			if _, err := client.Recv(ctx, cmem.Slice(0, 0)); err != nil {
				return
			}
		}
	})
	at := smem.Advertise(0, 4<<10)
	b.ResetTimer()
	for range b.N {
		require.NoError(b, client.RDMARead(context.Background(), cmem.Slice(0, 4<<10), at))
	}
	b.StopTimer()
	cancel()
	waiter.Wait()
}

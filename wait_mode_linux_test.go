//go:build linux && !purego

package iwarp_test

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testproc"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// eventFDs counts the open eventfds.
func eventFDs(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, f := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); to == "anon_inode:[eventfd]" {
			n++
		}
	}
	return n
}

// waits waits for one completion of cq, in a goroutine.
func waits(ctx context.Context, cq *iwarp.CQ) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := cq.Wait(ctx, make([]iwarp.WC, 1))
		done <- err
	}()
	return done
}

// blocks starts a goroutine that waits for one completion of s's receives, and returns when the
// goroutine sleeps in the kernel: want eventfds are open then. A waiter that comes while a reader
// receives parks instead; peer sends it a message, and blocks tries again.
func (s *side) blocks(ctx context.Context, peer *iwarp.QP, want int) <-chan error {
	s.Helper()
	for {
		require.NoError(s, s.qp.PostRecv(iwarp.RecvWR{}))
		done := waits(ctx, s.qp.RecvCQ())
		for range 20 {
			if eventFDs(s.T) == want {
				return done
			}
			time.Sleep(time.Millisecond)
		}
		require.NoError(s, ctx.Err(), "it never sleeps")
		require.NoError(s, peer.Send(ctx))
		require.NoError(s, <-done)
	}
}

// TestBlockedWait: it ends like any other wait, and uses an eventfd while the connection is busy.
func TestBlockedWait(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	client, server := connect(t, pairConfig{})
	ctx := testContext(t)
	cq := server.qp.RecvCQ()
	before := eventFDs(t)
	none := func(expectation string) {
		require.Eventually(t, func() bool { return eventFDs(t) == before }, wiretest.Patience, time.Millisecond, expectation)
	}
	cq.SetWaitMode(iwarp.WaitBlock)

	done := server.blocks(ctx, client.qp, before+1)
	require.NoError(t, client.qp.Send(ctx))
	require.NoError(t, <-done, "a message ends that")

	short, cancel := context.WithCancel(ctx)
	done = server.blocks(short, client.qp, before+1)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	none("nothing is kept for an idle connection")

	done = server.blocks(ctx, client.qp, before+1)
	cq.SetWaitMode(iwarp.WaitPark)
	require.NoError(t, client.qp.Send(ctx))
	require.NoError(t, <-done, "a change of the mode is for the next wait")
	done = waits(ctx, cq)
	none("which parks")
	require.NoError(t, client.qp.Send(ctx))
	require.NoError(t, <-done)

	cq.SetWaitMode(iwarp.WaitBlock)
	done = server.blocks(ctx, client.qp, before+1)
	require.NoError(t, client.rnic.Close())
	require.NoError(t, <-done, "the receive is flushed")
	none("nothing is kept for a closed connection")
}

// TestManyBlockedWaits: each of many connections has a waiter that sleeps in the kernel.
func TestManyBlockedWaits(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	const many = 8
	client, server := newSide(t, nil), newSide(t, nil)
	ctx := testContext(t)
	before := eventFDs(t)
	var peers []*iwarp.QP
	var waiting []<-chan error
	for i := range many {
		client.connect(server, pairConfig{})
		server.qp.RecvCQ().SetWaitMode(iwarp.WaitBlock)
		waiting = append(waiting, server.blocks(ctx, client.qp, before+i+1))
		peers = append(peers, client.qp)
	}
	for i, peer := range peers {
		require.NoError(t, peer.Send(ctx))
		require.NoError(t, <-waiting[i])
	}
}

// TestBlockedWaitLeavesTheProcessor: the only processor is left to other goroutines.
func TestBlockedWaitLeavesTheProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	if !testproc.Alone(t) {
		return
	}
	require.Equal(t, 1, runtime.GOMAXPROCS(0))
	client, server := connect(t, pairConfig{})
	ctx := testContext(t)
	for _, s := range []*side{client, server} {
		s.qp.RecvCQ().SetWaitMode(iwarp.WaitBlock)
		s.qp.SendCQ().SetWaitMode(iwarp.WaitBlock)
	}
	var work atomic.Int64
	working, stop := context.WithCancel(ctx)
	go func() {
		for working.Err() == nil {
			work.Add(1)
			runtime.Gosched()
		}
	}()
	echo := make(chan error, 1)
	const rounds = 50
	go func() {
		for range rounds {
			if _, err := server.qp.Recv(ctx, iwarp.SGE{}); err != nil {
				echo <- err
				return
			}
			if err := server.qp.Send(ctx); err != nil {
				echo <- err
				return
			}
		}
		echo <- nil
	}()
	for range rounds {
		require.NoError(t, client.qp.Send(ctx))
		_, err := client.qp.Recv(ctx, iwarp.SGE{})
		require.NoError(t, err)
	}
	require.NoError(t, <-echo)
	stop()
	require.Positive(t, work.Load())
}

package iwarp_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// TestVERBS_77_Signal ends one wait, that of a goroutine which sleeps or else the next one, and takes no completion away.
func TestVERBS_77_Signal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cq := newTestCQ(t, 16)
		dst := make([]iwarp.WC, 4)
		cq.Signal()
		cq.Signal()
		n, err := cq.Wait(context.Background(), dst)
		require.NoError(t, err)
		require.Zero(t, n, "the next wait ends at once")

		var ended atomic.Int32
		for _, wait := range []func(context.Context, []iwarp.WC) (int, error){cq.Wait, cq.WaitSolicited, cq.Wait} {
			go func() {
				n, err := wait(context.Background(), make([]iwarp.WC, 1))
				if n != 0 || err != nil {
					t.Errorf("%d completions, %v", n, err)
				}
				ended.Add(1)
			}()
		}
		for i := range int32(3) {
			synctest.Wait()
			require.Equal(t, i, ended.Load(), "two calls before a wait were one")
			cq.Signal()
		}
		synctest.Wait()
		require.EqualValues(t, 3, ended.Load())

		fill(cq, 1, 2)
		cq.Signal()
		n, err = cq.Wait(context.Background(), dst)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = cq.Wait(over, dst)
		require.ErrorIs(t, err, context.Canceled, "the wait that returned completions was the one")
		time.AfterFunc(time.Second, func() { fill(cq, 3) })
		for wc, err := range cq.All(context.Background()) {
			require.NoError(t, err)
			require.EqualValues(t, 3, wc.ID, "All yields completions alone")
			break
		}
	})
}

// TestVERBS_77_SignalEndsTheWaitOfAReceiver: of a goroutine that receives for the QP while it waits.
func TestVERBS_77_SignalEndsTheWaitOfAReceiver(t *testing.T) {
	for name, mode := range map[string]iwarp.WaitMode{"park": iwarp.WaitPark, "block": iwarp.WaitBlock} {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t, pairConfig{})
			cq := server.qp.RecvCQ()
			cq.SetWaitMode(mode)
			for range 20 {
				done := make(chan int)
				go func() {
					n, err := cq.Wait(testContext(t), make([]iwarp.WC, 1))
					if err != nil {
						t.Error(err)
					}
					done <- n
				}()
				time.Sleep(time.Millisecond) // it sleeps by now, most often
				cq.Signal()
				require.Zero(t, <-done)
			}
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
			require.NoError(t, client.qp.Send(testContext(t)))
			n, err := cq.Wait(testContext(t), make([]iwarp.WC, 1))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		})
	}
}

// TestCQOfEachQueueHasItsDepth: on a QP whose queues differ.
func TestCQOfEachQueueHasItsDepth(t *testing.T) {
	s := newSide(t, nil)
	qp, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd, SendDepth: 2, RecvDepth: 5})
	require.NoError(t, err)
	require.Equal(t, []int{2, 5}, []int{qp.SendCQ().Stats().Depth, qp.RecvCQ().Stats().Depth})
}

// TestPollFreesTheSlotsOfBothQueues: one Poll takes completions of both from the CQ that they share.
func TestPollFreesTheSlotsOfBothQueues(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{}))
		k.p.Send(wiretest.Send(1, 0, ""))
		synctest.Wait()
		k.posts(iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend})
		synctest.Wait()
		require.Equal(t, 3, k.cq.Poll(make([]iwarp.WC, 4)))
		stats := k.qp.Stats()
		require.Equal(t, []int{0, 0}, []int{stats.SendQueued, stats.RecvQueued})
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_79_OverflowBeforeTheFirstMessage: a responder that may not send yet has work that is done without it.
func TestVERBS_79_OverflowBeforeTheFirstMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(1)
		require.NoError(t, err)
		_, s.qp = initiator(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SendCQ: cq})
		_, mr := s.register(8, 0, nil)
		again := iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Invalidate: mr.STag()}
		require.NoError(t, s.qp.PostSend(again, again, iwarp.SendWR{Op: iwarp.OpSend}))
		s.wantEvents("the second completion is lost, which ends the QP", iwarp.EventCQOverflow, iwarp.EventTerminated)
	})
}

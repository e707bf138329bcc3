package iwarp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// anyQP is whose work a test pretends to complete.
var anyQP = &iwarp.QP{}

// newTestCQ makes a CQ that the test itself fills.
func newTestCQ(t *testing.T, depth int) *iwarp.CQ {
	t.Helper()
	cq, err := newSide(t, nil).rnic.CreateCQ(depth)
	require.NoError(t, err)
	return cq
}

func fill(cq *iwarp.CQ, ids ...uint64) (took int) {
	for _, id := range ids {
		if cq.Push(iwarp.WC{QP: anyQP, ID: id}) {
			took++
		}
	}
	return took
}

func TestCQPollTakesTheOldestFirst(t *testing.T) {
	cq := newTestCQ(t, 100)
	dst := make([]iwarp.WC, 7)
	require.Zero(t, cq.Poll(dst), "an empty CQ has nothing")
	next, want := uint64(0), uint64(0)
	for round := range 40 { // the ring wraps and grows while it is in use
		for range min(11, 100-int(next-want)) {
			require.Equal(t, 1, fill(cq, next))
			next++
		}
		n := cq.Poll(dst[:1+round%7])
		for _, wc := range dst[:n] {
			require.Equal(t, want, wc.ID, "completions come in order")
			want++
		}
	}
	require.Zero(t, cq.Poll(nil))
}

func TestCQGrowsOnUseUpToItsDepth(t *testing.T) {
	cq := newTestCQ(t, 1000)
	require.Zero(t, cq.Memory(), "an unused CQ has no memory")
	for i := range 1000 {
		require.Equal(t, 1, fill(cq, uint64(i)))
	}
	require.Equal(t, 1024, cq.Memory())
	require.Zero(t, fill(cq, 1000), "what does not fit is lost")
	dst := make([]iwarp.WC, 2000)
	require.Equal(t, 1000, cq.Poll(dst))
	require.EqualValues(t, 999, dst[999].ID)
	e := <-cq.RNIC().Events()
	require.Equal(t, iwarp.EventCQOverflow, e.Kind)
	require.Same(t, cq, e.CQ)
	require.ErrorIs(t, e.Err, iwarp.ErrQueueFull)
	require.Equal(t, 1, fill(newTestCQ(t, 1), 1, 2), "a CQ of one entry takes one")
}

// TestCQResize: the completions in the CQ stay there, in order.
func TestCQResize(t *testing.T) {
	cq := newTestCQ(t, 4)
	dst := make([]iwarp.WC, 64)
	fill(cq, 0, 1, 2, 3)
	require.Equal(t, 2, cq.Poll(dst[:2]))
	fill(cq, 4, 5) // the ring wraps
	require.Equal(t, iwarp.CQStats{Waiting: 4, Depth: 4}, cq.Stats())
	require.ErrorIs(t, cq.Resize(3), iwarp.ErrLimit, "four wait to be polled")
	for _, depth := range []int{0, -1, cq.RNIC().Limits().MaxCQDepth + 1} {
		require.Error(t, cq.Resize(depth))
	}
	require.Zero(t, fill(cq, 99), "a refused Resize changes nothing")
	require.NoError(t, cq.Resize(40))
	for id := uint64(6); id < 42; id++ {
		require.Equal(t, 1, fill(cq, id))
	}
	require.Zero(t, fill(cq, 99), "forty is forty")
	require.Equal(t, iwarp.CQStats{Waiting: 40, Depth: 40}, cq.Stats())
	require.Equal(t, 38, cq.Poll(dst[:38]))
	require.NoError(t, cq.Resize(2), "there is room for the two that are left")
	require.Equal(t, 38+2, 38+cq.Poll(dst[38:]))
	for i := range 40 {
		require.EqualValues(t, 2+i, dst[i].ID)
	}
	require.Equal(t, 2, fill(cq, 1, 2, 3))
	require.Equal(t, 2, cq.Poll(dst))

	for _, depth := range []int{4, 40, 2} {
		e := <-cq.RNIC().Events()
		require.Equal(t, iwarp.EventCQOverflow, e.Kind)
		require.ErrorContains(t, e.Err, fmt.Sprintf("%d entries", depth), "each size tells once that it was too small")
	}
	require.Empty(t, cq.RNIC().Events())
	require.NoError(t, cq.Close())
	require.ErrorIs(t, cq.Resize(8), net.ErrClosed)
}

func TestSEC_22_CQDepthIsLimited(t *testing.T) {
	r := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxCQDepth: 10, MaxCQ: 2}}).rnic
	for _, depth := range []int{0, -1, 11} {
		_, err := r.CreateCQ(depth)
		require.Error(t, err, depth)
	}
	a, err := r.CreateCQ(10)
	require.NoError(t, err)
	_, err = r.CreateCQ(1)
	require.NoError(t, err)
	_, err = r.CreateCQ(1)
	require.ErrorIs(t, err, iwarp.ErrLimit)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close(), "closing again does nothing")
	_, err = r.CreateCQ(1)
	require.NoError(t, err, "a closed CQ counts no more")
	_, err = r.CreateCQ(1)
	require.ErrorIs(t, err, iwarp.ErrLimit, "and it was given back once")
}

func TestCQWaitNeedNotBlock(t *testing.T) {
	cq := newTestCQ(t, 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dst := make([]iwarp.WC, 4)
	_, err := cq.Wait(ctx, dst)
	require.ErrorIs(t, err, context.Canceled)
	fill(cq, 1, 2)
	n, err := cq.Wait(ctx, dst)
	require.NoError(t, err, "what is there is returned though the context has ended")
	require.Equal(t, 2, n)
	_, err = cq.Wait(context.Background(), nil)
	require.Error(t, err, "waiting without room would never end")
}

func TestVERBS_76_CQEachCompletionWakesOneWaiter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cq := newTestCQ(t, 16)
		ctx, cancel := context.WithCancel(context.Background())
		var woken, cancelled atomic.Int32
		for range 8 {
			go func() {
				var one [1]iwarp.WC
				if _, err := cq.Wait(ctx, one[:]); err != nil {
					cancelled.Add(1)
					return
				}
				woken.Add(1)
			}()
		}
		synctest.Wait()
		for i := range int32(5) {
			fill(cq, uint64(i))
			synctest.Wait()
			require.Equal(t, i+1, woken.Load(), "each completion ends one wait")
		}
		cancel()
		synctest.Wait()
		require.EqualValues(t, 3, cancelled.Load())
		require.Zero(t, cq.Waiting())
		fill(cq, 9)
		require.Equal(t, 1, cq.Poll(make([]iwarp.WC, 2)), "it is still in the queue")
	})
}

// TestCQWaiterThatLeavesPassesItsTurnOn: a completion wakes a waiter whose context
// ends at the same moment.
func TestCQWaiterThatLeavesPassesItsTurnOn(t *testing.T) {
	for range 200 {
		bubble(t, func(t *testing.T) {
			cq := newTestCQ(t, 4)
			ctx, cancel := context.WithCancel(context.Background())
			var got atomic.Int32
			var done sync.WaitGroup
			for _, ctx := range []context.Context{ctx, context.Background()} {
				done.Go(func() {
					var one [1]iwarp.WC
					if n, _ := cq.Wait(ctx, one[:]); n == 1 {
						got.Add(1)
					}
				})
				synctest.Wait() // the waiter that leaves is the first in line
			}
			cancel()
			fill(cq, 1) // mostly before the first has left the line
			synctest.Wait()
			if got.Load() == 0 {
				t.Fatal("a completion is there and a waiter sleeps")
			}
			fill(cq, 2)
			done.Wait()
		})
	}
}

func TestRDMAP_51_57_VERBS_77_WaitSolicited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cq := newTestCQ(t, 16)
		ctx := testContext(t)
		for name, wc := range map[string]iwarp.WC{
			"a message with a solicited event": {QP: anyQP, ID: 9, Op: iwarp.OpRecv, Flags: iwarp.Solicited},
			"a failure":                        {QP: anyQP, ID: 9, Op: iwarp.OpSend, Status: iwarp.StatusRemoteAccess},
			"a flushed receive":                {QP: anyQP, ID: 9, Op: iwarp.OpRecv, Status: iwarp.StatusFlushed},
		} {
			type result struct {
				wcs []iwarp.WC
				err error
			}
			got := make(chan result, 1)
			go func() {
				dst := make([]iwarp.WC, 8)
				n, err := cq.WaitSolicited(ctx, dst)
				got <- result{dst[:n], err}
			}()
			cq.Push(iwarp.WC{QP: anyQP, ID: 1, Op: iwarp.OpRecv})
			cq.Push(iwarp.WC{QP: anyQP, ID: 2, Op: iwarp.OpSend, Flags: iwarp.Solicited})
			synctest.Wait()
			require.Empty(t, got, "neither a plain message nor a completed Send ends the wait")
			cq.Push(wc)
			r := <-got
			require.NoError(t, r.err)
			require.Equal(t, []uint64{1, 2, 9}, ids(r.wcs), "%s ends the wait; then everything is taken", name)
		}

		// A waiter of the other kind is not woken in vain, nor stands in the way.
		solicited := make(chan int, 1)
		go func() {
			n, _ := cq.WaitSolicited(ctx, make([]iwarp.WC, 1))
			solicited <- n
		}()
		synctest.Wait()
		plain := make(chan int, 1)
		go func() {
			n, _ := cq.Wait(ctx, make([]iwarp.WC, 1))
			plain <- n
		}()
		synctest.Wait()
		fill(cq, 3)
		require.Equal(t, 1, <-plain, "a plain completion does not wake the waiter for a solicited one")
		require.Empty(t, solicited)
		cq.Push(iwarp.WC{QP: anyQP, Op: iwarp.OpRecv, Flags: iwarp.Solicited})
		require.Equal(t, 1, <-solicited)
		require.Zero(t, cq.Solicited())
	})
}

func TestCQAllLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cq := newTestCQ(t, 16)
		ctx, cancel := context.WithCancel(context.Background())
		fill(cq, 1, 2, 3, 4)
		for wc, err := range cq.All(ctx) {
			require.NoError(t, err)
			if wc.ID == 2 {
				break
			}
		}
		var rest []uint64
		time.AfterFunc(time.Second, cancel)
		var last error
		for wc, err := range cq.All(ctx) {
			if last = err; err != nil {
				require.Zero(t, wc)
				continue
			}
			rest = append(rest, wc.ID)
		}
		require.ErrorIs(t, last, context.Canceled, "the last that it yields is the error of the context")
		require.Equal(t, []uint64{3, 4}, rest, "leaving the loop early has lost nothing")
	})
}

func TestCQCloseWakesAllAndKeepsWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cq := newTestCQ(t, 16)
		errs := make(chan error, 4)
		for i := range 4 {
			wait := cq.Wait
			if i%2 == 0 {
				wait = cq.WaitSolicited
			}
			go func() {
				_, err := wait(context.Background(), make([]iwarp.WC, 1))
				errs <- err
			}()
		}
		synctest.Wait()
		require.NoError(t, cq.Close())
		for range 4 {
			require.ErrorIs(t, <-errs, net.ErrClosed)
		}
		fill(cq, 1)
		require.Equal(t, 1, cq.Poll(make([]iwarp.WC, 1)))
	})
}

// TestVERBS_78_CQNeverMisses: with two producers and three kinds of consumer, no completion is
// lost or delivered twice, and no consumer sleeps while there is one.
func TestVERBS_78_CQNeverMisses(t *testing.T) {
	const each, producers = 3000, 2
	cq := newTestCQ(t, 64)
	ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
	defer cancel()
	seen := make([]atomic.Int32, each*producers)
	var left atomic.Int32
	left.Store(each * producers)
	take := func(wcs []iwarp.WC) {
		for _, wc := range wcs {
			seen[wc.ID].Add(1)
			if left.Add(-1) == 0 {
				cancel()
			}
		}
	}
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range each {
				for !cq.Push(iwarp.WC{QP: anyQP, ID: uint64(p*each + i)}) {
					time.Sleep(time.Microsecond)
				}
			}
		})
	}
	for c := range 3 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			dst := make([]iwarp.WC, 8)
			for ctx.Err() == nil {
				if r.IntN(3) == 0 {
					take(dst[:cq.Poll(dst[:1+r.IntN(8)])])
					continue
				}
				short, stop := context.WithTimeout(ctx, time.Duration(1+r.IntN(300))*time.Microsecond)
				if r.IntN(2) == 0 {
					short = ctx
				}
				n, _ := cq.Wait(short, dst[:1+r.IntN(8)])
				stop()
				take(dst[:n])
			}
		})
	}
	all.Wait()
	require.Zero(t, left.Load(), "every completion was taken")
	for i := range seen {
		require.EqualValues(t, 1, seen[i].Load(), "completion %d", i)
	}
}

// TestVERBS_78_WhatOneWaiterLeavesWakesTheNext: two completions come together, and the
// waiter that is woken has room for one.
func TestVERBS_78_WhatOneWaiterLeavesWakesTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cq := newTestCQ(t, 4)
		got := make(chan uint64, 2)
		for range 2 {
			go func() {
				var one [1]iwarp.WC
				if n, _ := cq.Wait(testContext(t), one[:]); n == 1 {
					got <- one[0].ID
				}
			}()
		}
		synctest.Wait()
		require.True(t, cq.Push(iwarp.WC{QP: anyQP, ID: 1}, iwarp.WC{QP: anyQP, ID: 2}))
		synctest.Wait()
		require.Len(t, got, 2, "no waiter sleeps while there is one")
		require.Equal(t, uint64(1+2), <-got+<-got)
	})
}

// A latecomer is a context that calls comes when its state is first checked, which a waiter does
// after it has found the queue empty and before it sleeps.
type latecomer struct {
	context.Context
	once  sync.Once
	comes func()
}

func (c *latecomer) Err() error {
	c.once.Do(c.comes)
	return c.Context.Err()
}

func (c *latecomer) Done() <-chan struct{} {
	c.once.Do(c.comes)
	return c.Context.Done()
}

// TestVERBS_78_CompletionBetweenLookAndSleep: one comes as the only waiter, which has found
// nothing, is about to sleep. Nothing else would wake it.
func TestVERBS_78_CompletionBetweenLookAndSleep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		client.over(server, net.Pipe) // over net.Pipe a reader always receives
		synctest.Wait()
		cq := client.qp.RecvCQ()
		for _, wait := range []func(context.Context, []iwarp.WC) (int, error){cq.Wait, cq.WaitSolicited} {
			wc := iwarp.WC{QP: client.qp, ID: 1, Op: iwarp.OpRecv, Flags: iwarp.Solicited}
			ctx := &latecomer{Context: testContext(t), comes: func() { cq.Push(wc) }}
			var one [1]iwarp.WC
			n, err := wait(ctx, one[:])
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, wc, one[0])
			require.NoError(t, ctx.Err(), "it has not slept until the end of its context")
		}
		require.NoError(t, client.qp.Abort())
		<-server.qp.Done()
	})
}

func TestVERBS_80_CQCannotBeClosedWhileInUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.ErrorContains(t, k.cq.Close(), "2 queues", "once as SendCQ and once as RecvCQ")
		require.NoError(t, k.qp.Abort())
		require.NoError(t, k.cq.Close())
		_, err := k.rnic.NewQP(&iwarp.QPConfig{PD: k.pd, SendCQ: k.cq})
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, k.pd.Use(), "what a refused QP took was given back")
		k.pd.Release()
	})
}

// TestRDMAP_129_SEC_24_VERBS_79_OverflowEndsOnlyTheQPThatLosesACompletion: two QPs on one CQ that is too
// small, of which only one completes more than it holds, and a third on another CQ.
func TestRDMAP_129_SEC_24_VERBS_79_OverflowEndsOnlyTheQPThatLosesACompletion(t *testing.T) {
	for name, overflow := range map[string]func(k *talk){
		"by a completed Send": func(k *talk) {
			k.posts(iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend})
		},
		"by a received message": func(k *talk) {
			require.NoError(k, k.qp.PostRecv(iwarp.RecvWR{}, iwarp.RecvWR{}, iwarp.RecvWR{}))
			for msn := range 3 {
				k.p.Send(wiretest.Send(uint32(msn+1), 0, ""))
				synctest.Wait() // nothing else makes the QP look
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				small, err := s.rnic.CreateCQ(4 * iwarp.DefaultDepth)
				require.NoError(t, err)
				loser := &talk{side: &side{T: t, rnic: s.rnic, pd: s.pd}}
				loser.p, loser.qp = responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SendCQ: small, RecvCQ: small})
				_, shares := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SendCQ: small, RecvCQ: small})
				_, apart := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
				small.SetDepth(2) // no CQ is so by itself

				overflow(loser)
				loser.wantTerminate("the QP that lost a completion says 0/2/07", 0x0207)
				var te *iwarp.TerminateError
				require.ErrorAs(t, loser.qp.Err(), &te)
				require.False(t, te.Remote)
				e := <-s.rnic.Events()
				require.Equal(t, iwarp.EventCQOverflow, e.Kind)
				require.Same(t, small, e.CQ)
				require.Equal(t, iwarp.StateRTS, shares.State(), "the QP that has lost nothing continues")
				require.Equal(t, iwarp.StateRTS, apart.State())
				require.NoError(t, apart.Send(testContext(t)))
				require.Equal(t, 2, small.Poll(make([]iwarp.WC, 9)), "what was there before is still there")
				stats := loser.qp.Stats()
				require.Zero(t, stats.SendQueued+stats.RecvQueued, "what was lost is in no queue")
				require.NoError(t, shares.Send(testContext(t)))
				synctest.Wait()
				require.Equal(t, iwarp.StateRTS, shares.State(), "and goes on")
				require.Equal(t, iwarp.StateRTS, apart.State(), "nor is another CQ concerned")

				require.Equal(t, []iwarp.State{iwarp.StateRTS, iwarp.StateRTS}, []iwarp.State{shares.State(), apart.State()}, "and goes on to")
				require.NoError(t, shares.Abort())
				require.NoError(t, apart.Abort())
			})
		})
	}
}

// TestRDMAP_128_131_SEC_1_ObjectsStayWithTheirRNIC: a CQ or PD cannot be used from another RNIC.
func TestRDMAP_128_131_SEC_1_ObjectsStayWithTheirRNIC(t *testing.T) {
	a, b := newSide(t, nil), newSide(t, nil)
	foreign, err := b.rnic.CreateCQ(1)
	require.NoError(t, err)
	for _, qc := range []iwarp.QPConfig{{PD: b.pd}, {PD: a.pd, SendCQ: foreign}, {PD: a.pd, RecvCQ: foreign}} {
		_, err := a.rnic.NewQP(&qc)
		require.ErrorContains(t, err, "another RNIC")
	}
	require.Zero(t, a.rnic.InUse().MaxQP)
	_, err = a.pd.RegisterMR(nil, stag.LocalWrite, nil)
	require.Error(t, err)
	require.Zero(t, a.rnic.InUse().MaxMR)
}

// TestWaitOnTheCQOfAQPEndsWithTheQP: completions that have come can be taken first.
func TestWaitOnTheCQOfAQPEndsWithTheQP(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		_, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, qp.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2}))
		ctx := context.Background()
		all := make(chan error, 1)
		go func() {
			for _, err := range qp.SendCQ().All(ctx) {
				all <- err
			}
		}()
		solicited := make(chan error, 1)
		go func() {
			var wcs [8]iwarp.WC
			_, err := qp.SendCQ().WaitSolicited(ctx, wcs[:])
			solicited <- err
		}()
		synctest.Wait()
		require.Empty(t, all)
		require.NoError(t, qp.Abort())
		require.ErrorIs(t, <-all, net.ErrClosed)
		require.ErrorIs(t, <-solicited, net.ErrClosed)
		require.Equal(t, []uint64{1, 2}, ids(s.completes(qp.RecvCQ(), 2)))
		_, err := qp.RecvCQ().Wait(ctx, make([]iwarp.WC, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestCQThatIsSharedOutlivesItsQPs: others may come.
func TestCQThatIsSharedOutlivesItsQPs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.Abort())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := k.cq.Wait(ctx, make([]iwarp.WC, 1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestWaitEndsWithTheRNIC: the flushed receive can be taken first.
func TestWaitEndsWithTheRNIC(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		idle, err := k.rnic.CreateCQ(8)
		require.NoError(t, err)
		waits := make(chan error, 1)
		go func() {
			_, err := idle.Wait(context.Background(), make([]iwarp.WC, 1))
			waits <- err
		}()
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 7}))
		synctest.Wait()
		require.Empty(t, waits)
		require.NoError(t, k.rnic.Close())
		require.ErrorIs(t, <-waits, net.ErrClosed)
		require.Equal(t, []uint64{7}, ids(k.completes(k.cq, 1)))
		_, err = k.cq.WaitSolicited(context.Background(), make([]iwarp.WC, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = k.rnic.CreateCQ(8)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestWaitModeWhereNoConnectionBlocks: the waiter parks.
func TestWaitModeWhereNoConnectionBlocks(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe"})
	ctx := testContext(t)
	cq := server.qp.RecvCQ()
	cq.SetWaitMode(iwarp.WaitBlock)
	require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}, iwarp.RecvWR{}))
	for range 2 {
		require.NoError(t, client.qp.Send(ctx))
		n, err := cq.Wait(ctx, make([]iwarp.WC, 1))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err := cq.Wait(short, make([]iwarp.WC, 1))
	require.ErrorIs(t, err, context.Canceled)
}

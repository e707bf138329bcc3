package rma

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
)

// TestRMA_31_ExecutorMovesAnyNumberOfOctets: in chunks of at most MaxOp octets.
func TestRMA_31_ExecutorMovesAnyNumberOfOctets(t *testing.T) {
	bubble(t, movesAnyNumber)
}

func movesAnyNumber(t *testing.T) {
	const large = 10<<20 + 3
	w := newPair(t, plan{})
	big := NewMemory(make([]byte, large))
	_, err := w.server.Register(2, big, nil)
	require.NoError(t, err)
	w.serve()
	w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
	require.NoError(t, err)
	h, err := w.client.Open(w.context(), 2, MayRead|MayWrite)
	require.NoError(t, err)
	require.EqualValues(t, large, h.Size())
	e := NewExecutor(w.portal(16))
	maxOp := w.client.MaxOp()
	for _, n := range []int{0, 1, maxOp - 1, maxOp, maxOp + 1, large} {
		want := octets(byte(n), n)
		done, err := e.WriteAt(w.context(), h, want, 0)
		require.NoError(t, err)
		require.Equal(t, n, done)
		big.View(func(b []byte) { require.True(t, bytes.Equal(want, b[:n]), "%d octets arrive", n) })
		got := make([]byte, n)
		done, err = e.ReadAt(w.context(), h, got, 0)
		require.NoError(t, err)
		require.Equal(t, n, done)
		require.True(t, bytes.Equal(want, got), "%d octets come back", n)
	}
	require.NoError(t, w.client.Close())
	require.NoError(t, <-w.served)
}

// TestExecutorWithoutPortals: the error says what is missing.
func TestExecutorWithoutPortals(t *testing.T) {
	_, err := NewExecutor().ReadAt(t.Context(), new(Handle), nil, 0)
	require.EqualError(t, err, "rma: an Executor without Portals")
}

// TestExecutorOfClosedPortals: a transfer fails, even in the middle.
func TestExecutorOfClosedPortals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, p, other := w.opens(), w.portal(1), w.portal(1)
		e := NewExecutor(p, other)
		require.NoError(t, other.Close())
		n, err := e.ReadAt(w.context(), h, make([]byte, 3*w.client.MaxOp()), 0)
		require.NoError(t, err, "there is another one")
		require.Equal(t, 3*w.client.MaxOp(), n)
		for _, n := range []int{1, 3 * w.client.MaxOp()} {
			require.NoError(t, p.Close())
			n, err = e.ReadAt(w.context(), h, make([]byte, n), 0)
			require.ErrorIs(t, err, ErrNoSlot)
			require.Zero(t, n)
		}
	})
}

// TestRMA_32_ExecutorStopsAtTheFirstFailure: it reports how many octets before the failure were moved.
func TestRMA_32_ExecutorStopsAtTheFirstFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, e := w.opens(), NewExecutor(w.portal(8))
		maxOp := int64(w.client.MaxOp())
		end := int64(w.region.Size())
		from := end - 3*maxOp + 1
		n, err := e.WriteAt(w.context(), h, octets(1, int(20*maxOp)), from)
		require.ErrorIs(t, err, ErrBounds)
		require.EqualValues(t, 2*maxOp, n, "the third one is not in the region as a whole")
		w.mem.View(func(b []byte) {
			require.Equal(t, octets(1, int(2*maxOp)), b[from:from+2*maxOp])
			require.Zero(t, b[end-1])
		})
	})
}

// TestRMA_35_WrongKeyMayBeAnOldOne: it may belong to a closed region whose number a new region has.
func TestRMA_35_WrongKeyMayBeAnOldOne(t *testing.T) {
	require.Equal(t, staleKey, verdictOf(&OpError{Outcome: RemoteAuth, Reason: BadKey}))
	require.Equal(t, staleKey, verdictOf(&OpError{Outcome: RemoteAuth, Reason: StaleEpoch}))
	require.NotEqual(t, staleKey, verdictOf(&OpError{Outcome: NACK, Reason: QueueFull}))
	require.NotEqual(t, staleKey, verdictOf(net.ErrClosed))
}

// TestRMA_35_ExecutorOpensAgain: once, and it repeats the operations that were refused.
func TestRMA_35_ExecutorOpensAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, e := w.opens(), NewExecutor(w.portal(8))
		for rotations := 1; rotations <= 3; rotations++ {
			for range rotations {
				_, err := w.region.Rekey(w.context(), nil, 0)
				require.NoError(t, err)
			}
			n, err := e.WriteAt(w.context(), h, octets(byte(rotations), 20000), 0)
			require.NoError(t, err)
			require.Equal(t, 20000, n)
			require.Equal(t, w.region.Epoch(), h.Epoch())
		}
		e.SetAutoReopen(false)
		_, err := w.region.Rekey(w.context(), nil, 0)
		require.NoError(t, err)
		n, err := e.ReadAt(w.context(), h, make([]byte, 20000), 0)
		require.ErrorIs(t, err, ErrRemoteAuth)
		require.Zero(t, n)
	})
}

// TestRMA_36_CancelledContextEndsTheWait: but not the operation.
func TestRMA_36_CancelledContextEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, p := w.opens(), w.portal(1)
		e := NewExecutor(p)
		stuck := w.stall()
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error)
		buf := make([]byte, 16)
		go func() {
			_, err := e.ReadAt(ctx, h, buf, 0)
			failed <- err
		}()
		stuck.wait()
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		_, err := p.Post(Command{Op: Read, Handle: h, Buf: make([]byte, 1)})
		require.ErrorIs(t, err, ErrNoSlot, "the slot is in use until the outcome")
		require.Empty(t, e.idle, "no other call uses what the operation will use")
		stuck.release()
		n, err := e.ReadAt(w.context(), h, make([]byte, 16), 0)
		require.NoError(t, err)
		require.Equal(t, 16, n)
	})
}

// TestRMA_44_ExecutorAllocatesNothingOfItsOwn: there is only the one allocation of each operation.
func TestRMA_44_ExecutorAllocatesNothingOfItsOwn(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	w := start(t, plan{network: "tcp"})
	h, e := w.opens(), NewExecutor(w.portal(8))
	buf := make([]byte, 5*w.client.MaxOp())
	ctx := context.Background()
	var err error
	once := func() { _, err = e.ReadAt(ctx, h, buf, 0) }
	for range 200 { // until each entry of each queue has been used
		once()
	}
	n := testing.AllocsPerRun(200, once)
	require.NoError(t, err)
	require.LessOrEqual(t, n, 5.0)
}

// TestExecutorAfterManyOperationsThatCouldNotBegin: they leave nothing behind, and a Slot has 16 bits.
func TestExecutorAfterManyOperationsThatCouldNotBegin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		h, err := w.client.Open(w.context(), regionID, MayRead)
		require.NoError(t, err)
		p := w.portal(4)
		e := NewExecutor(p)
		ctx := w.context()
		for range 1<<16 + 2 {
			_, err := e.WriteAt(ctx, h, octets(1, 16), 0)
			require.ErrorIs(t, err, errNotOpen)
		}
		maxOp := w.client.MaxOp()
		n, err := e.ReadAt(ctx, h, make([]byte, 3*maxOp), int64(w.region.Size())-int64(2*maxOp))
		require.ErrorIs(t, err, ErrBounds)
		require.Equal(t, 2*maxOp, n)
		require.NoError(t, p.Close(), "all slots are free")
		require.LessOrEqual(t, len(e.idle[0].chunks), 4, "as many as there are slots")
	})
}

// TestExecutorGoesOnWithoutAConnectionThatHasEnded: even if the region gets another key, and whichever connection the
// Handle belongs to. Without any connection, its error says why.
func TestExecutorGoesOnWithoutAConnectionThatHasEnded(t *testing.T) {
	for lost := range 2 {
		bubble(t, func(t *testing.T) {
			w := start(t, plan{})
			o := w.another()
			o.serve()
			var err error
			o.client, err = NewClient(o.context(), o.qps[0], &o.plan.client)
			require.NoError(t, err)
			h, e := w.opens(), NewExecutor(w.portal(1), o.portal(1))
			for i, p := range []*pair{[]*pair{w, o}[lost], []*pair{o, w}[lost]} {
				n, err := e.WriteAt(w.context(), h, octets(1, 50000), 7)
				require.NoError(t, err)
				require.Equal(t, 50000, n)
				require.NoError(t, p.qps[1].Abort())
				<-p.client.Done()
				require.Error(t, <-p.served)
				p.served = nil
				if i == 0 {
					_, err = w.region.Rekey(w.context(), nil, 0)
					require.NoError(t, err)
				}
			}
			_, err = e.WriteAt(w.context(), h, octets(1, 50000), 7)
			require.ErrorIs(t, err, net.ErrClosed)
			require.NoError(t, o.client.Close())
			o.stop()
		})
	}
}

// TestRMA_31_ExecutorThatOpensTheRegion: before it opens the region on another connection, which is slow, it sends the operations begun so far.
func TestRMA_31_ExecutorThatOpensTheRegion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var w *pair
		var sent []uint64 // messages sent by w, a moment after the start of each Open
		w = start(t, plan{server: ServerConfig{Authorize: func(_ iwarp.Peer, _ uint64, ops Ops) Ops {
			time.Sleep(time.Millisecond)
			sent = append(sent, w.qps[0].Stats().Sent.Send.Messages)
			return ops
		}}})
		o := w.another()
		o.serve()
		var err error
		o.client, err = NewClient(o.context(), o.qps[0], &o.plan.client)
		require.NoError(t, err)
		h, e := w.opens(), NewExecutor(w.portal(1), o.portal(1))
		buf := make([]byte, 2*w.client.MaxOp())
		for range 20 { // until it keeps several operations outstanding; these use only one connection
			_, err := e.ReadAt(w.context(), h, buf[:16], 0)
			require.NoError(t, err)
		}
		time.Sleep(2 * defaultOpTimeout) // so that none of their timers sends anything
		before := w.qps[0].Stats().Sent.Send.Messages
		n, err := e.ReadAt(w.context(), h, buf, 0)
		require.NoError(t, err)
		require.Equal(t, len(buf), n)
		require.Len(t, sent, 2, "the second one is on the other connection")
		require.Equal(t, before+1, sent[1])
		require.NoError(t, o.client.Close())
		o.stop()
		require.NoError(t, <-o.served)
	})
}

// TestExecutorTellsThatAnOpenWasRefused: it reports that the Open of the region was refused, and not that its keys were old.
func TestExecutorTellsThatAnOpenWasRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var refuses atomic.Bool
		w := start(t, plan{server: ServerConfig{Authorize: func(_ iwarp.Peer, _ uint64, ops Ops) Ops {
			if refuses.Load() {
				return 0
			}
			return ops
		}}})
		h, e := w.opens(), NewExecutor(w.portal(8))
		_, err := w.region.Rekey(w.context(), nil, 0)
		require.NoError(t, err)
		refuses.Store(true)
		_, err = e.WriteAt(w.context(), h, octets(1, 20000), 0)
		var o *OpError
		require.ErrorAs(t, err, &o)
		require.Equal(t, [3]any{Open, RemoteAuth, BadKey}, [3]any{o.Op, o.Outcome, o.Reason})
	})
}

// TestExecutorGoesOnWhileALostWriteHasNoOutcome: the connection of the write has ended, but the server may have copied it.
func TestExecutorGoesOnWhileALostWriteHasNoOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		o := w.another()
		o.serve()
		var err error
		o.client, err = NewClient(o.context(), o.qps[0], &o.plan.client)
		require.NoError(t, err)
		h, p, e := w.opens(), w.portal(1), NewExecutor(w.portal(1), o.portal(1))
		stuck := w.stall()
		posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
		stuck.wait()
		require.NoError(t, w.qps[1].Abort())
		stuck.release()
		<-w.qps[0].Done()
		synctest.Wait()
		require.Zero(t, p.Poll(make([]Completion, 1)), "the server may have copied it")
		n, err := e.WriteAt(w.context(), h, octets(1, 50000), 7)
		require.NoError(t, err)
		require.Equal(t, 50000, n)
		require.ErrorIs(t, p.ended(t).Err, ErrTimeout)
		require.Error(t, <-w.served)
		w.served = nil
		require.NoError(t, o.client.Close())
		o.stop()
	})
}

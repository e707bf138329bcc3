package qpconn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

var forever = context.Background()

func TestWaiterReceivesForItself(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		w := e.waits(forever)
		e.holds(w, "it waits for input itself")
		require.Zero(e, w.asked, "and asks for no token")
		e.llp.arrives(aSend(1))
		w.ends("the message has come")
		e.becomes(rxArmed, "it is not expected back")
		require.Zero(e, e.readers.Load(), "no reader was started")
	})
}

// TestSleepWithoutAConnection: the sleep ends with the work or with the context, but not with a token alone.
func TestSleepWithoutAConnection(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		ctx, cancel := context.WithCancel(forever)
		w := newWaiter(e)
		over := false
		sleeps := func() {
			sleepUntilDone(ctx, w)
			over = true
		}
		go sleeps()
		synctest.Wait()
		w.token <- struct{}{}
		synctest.Wait()
		require.False(e, over)
		w.finish()
		synctest.Wait()
		require.True(e, over)

		w, over = newWaiter(e), false
		go sleeps()
		synctest.Wait()
		require.False(e, over)
		cancel()
		synctest.Wait()
		require.True(e, over)
		require.Zero(e, e.llp.calls)
	})
}

func TestWaitThatIsOverAlready(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w := newWaiter(e)
		w.done.Store(true)
		e.conn.Wait(forever, w, Plan{Sleep: transport.Park})
		time.Sleep(quickReturn)
		ctx, cancel := context.WithCancel(forever)
		cancel()
		e.conn.Wait(ctx, newWaiter(e), Plan{Sleep: transport.Park})
		e.becomes(rxArmed, "neither has received")
		require.Zero(e, e.llp.calls)
	})
}

// TestNilContextHoldsNothing: Wait panics, as elsewhere in Go, and a program that recovers can still use the connection.
func TestNilContextHoldsNothing(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		var none context.Context
		require.Panics(e, func() { e.conn.Wait(none, newWaiter(e), Plan{Sleep: transport.Park}) })
		w := e.waits(forever)
		e.holds(w, "the right to receive was free")
		w.finish()
		e.conn.Nudge()
		w.ends("it waits for nothing")
	})
}

func TestWaiterIsNudged(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it waits for input")
		e.conn.Nudge()
		w.hasNot("a nudge is a hint")
		w.finish()
		w.ends("another goroutine has done what it waits for")
		e.becomes(rxArmed, "it gives the right up")
	})
}

func TestWaiterSleepsAsItIsTold(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		for _, how := range []transport.Wait{transport.Park, transport.Block} {
			w := e.waitsWith(forever, Plan{Sleep: how})
			e.holds(w, "it receives")
			require.Equal(e, how, see(e.llp, func() transport.Wait { return e.llp.how }))
			w.finish()
			w.ends("it is woken")
		}
	})
}

// TestWaiterPolls: it polls for a time, which begins anew with each arrival, and then sleeps.
func TestWaiterPolls(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		const limit = 50 * time.Microsecond
		e.llp.looks = time.Microsecond
		parks := func() int { return see(e.llp, func() int { return e.llp.parks }) }
		e.postReceives(2)
		w := e.waitsWith(forever, Plan{Poll: limit, Sleep: transport.Park})
		for range 3 {
			time.Sleep(limit * 4 / 5)
			e.llp.arrives(aWrite)
		}
		require.Zero(e, parks(), "it polls")
		e.llp.arrives(aSend(1))
		time.Sleep(limit)
		w.ends("it has what it waits for")
		require.Zero(e, parks())

		w = e.waitsWith(forever, Plan{Poll: limit, Sleep: transport.Park})
		time.Sleep(2 * limit)
		e.holds(w, "nothing has come")
		require.Equal(e, 1, parks())
		e.llp.arrives(aSend(2))
		w.ends("it was woken")
	})
}

func TestPollingWaiterIsCancelled(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.looks = time.Microsecond
		ctx, cancel := context.WithTimeout(forever, time.Millisecond)
		defer cancel()
		w := e.waitsWith(ctx, Plan{Poll: time.Hour, Sleep: transport.Park})
		time.Sleep(2 * time.Millisecond)
		w.ends("its context has")
		e.becomes(rxArmed, "it gives the right up")
	})
}

// TestWaiterReceivesForOthers: it wakes them, and goes on receiving.
func TestWaiterReceivesForOthers(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(2)
		first := newWaiter(e)
		first.starts(forever, Plan{Sleep: transport.Park})
		e.holds(first, "it receives")
		second := e.waits(forever)
		synctest.Wait()
		require.Equal(e, 1, second.asked, "it sleeps for a token")
		e.llp.arrives(aSend(1))
		second.ends("the message is for the second one")
		e.holds(first, "the first one goes on")
		first.finish()
		first.ends("it is woken")
		e.becomes(rxArmed, "the second one is not given the right, since it has gone")
	})
}

func TestWaitersReceiveInTurn(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		const n = 4
		e.postReceives(n)
		var all []*waiter
		for range n {
			all = append(all, e.waits(forever))
			synctest.Wait()
		}
		for i, w := range all {
			e.holds(w, "it is its turn")
			e.llp.arrives(aSend(byte(i + 1)))
			w.ends("its message has come")
		}
		e.becomes(rxArmed, "there are no more")
		require.Zero(e, e.readers.Load())
		require.Equal(e, 2, e.llp.arms, "at the start and at the end: the right passes without")
	})
}

// TestWaitersAllGetTheirMessages: even if the messages come in one read.
func TestWaitersAllGetTheirMessages(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(3)
		a, b, c := e.waits(forever), e.waits(forever), e.waits(forever)
		synctest.Wait()
		e.llp.arrives(aSend(1), aSend(2), aSend(3))
		for _, w := range []*waiter{a, b, c} {
			w.ends("its message has come")
		}
		e.becomes(rxArmed, "no goroutine waits")
	})
}

func TestWaiterThatReceivesIsCancelled(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		ctx, cancel := context.WithCancel(forever)
		w := e.waits(ctx)
		e.holds(w, "it receives")
		next := e.waits(forever)
		cancel()
		w.ends("its context has")
		e.holds(next, "the next one receives")
		next.finish()
		next.ends("it is woken")
	})
}

// TestContextEndsAfterTheWait: that does not wake the waiter that receives now.
func TestContextEndsAfterTheWait(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		ctx, cancel := context.WithCancel(forever)
		w := e.waits(ctx)
		e.holds(w, "it receives")
		w.finish()
		w.ends("it is woken")
		next := e.waits(forever)
		e.holds(next, "it receives")
		wakes := func() int { return see(e.llp, func() int { return e.llp.wakes }) }
		before := wakes()
		cancel()
		e.holds(next, "the context of the first one is no concern of it")
		require.Equal(e, before, wakes())
		next.finish()
		next.ends("it is woken")
	})
}

func TestWaiterInTheQueueIsCancelled(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(2)
		first := e.waits(forever)
		e.holds(first, "it receives")
		ctx, cancel := context.WithCancel(forever)
		second := e.waits(ctx)
		synctest.Wait()
		third := e.waits(forever)
		synctest.Wait()
		cancel()
		second.ends("its context has")
		e.llp.arrives(aSend(1))
		first.ends("its message has come")
		e.holds(third, "the second one is not given the right")
		e.llp.arrives(aSend(2))
		third.ends("its message has come")
		e.becomes(rxArmed, "no goroutine waits")
	})
}

// TestWaiterIsCancelledAsItIsGrantedTheRight: it has already given up when the waiter before it grants it the right, and
// passes the right on.
func TestWaiterIsCancelledAsItIsGrantedTheRight(t *testing.T) {
	for _, others := range []int{0, 1} {
		inBubble(t, nil, func(e *end) {
			e.postReceives(2)
			first := e.waits(forever)
			e.holds(first, "it receives")
			ctx, cancel := context.WithCancel(forever)
			second := e.waits(ctx)
			synctest.Wait()
			var third *waiter
			if others > 0 {
				third = e.waits(forever)
				synctest.Wait()
			}
			resume := second.set("Delist")
			cancel()
			second.hasNot("it is about to leave")
			first.finish()
			first.ends("it is woken")
			e.becomes(rxBusy, "the second one has the right")
			resume()
			second.ends("its context has")
			if third == nil {
				e.becomes(rxArmed, "no goroutine waits")
				return
			}
			e.holds(third, "it passes the right on")
			e.llp.arrives(aSend(1))
			third.ends("its message has come")
		})
	}
}

// TestWaiterIsDoneAsItIsGrantedTheRight: it wakes for its outcome, and then has the right, too.
func TestWaiterIsDoneAsItIsGrantedTheRight(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		first := e.waits(forever)
		e.holds(first, "it receives")
		second := e.waits(forever)
		synctest.Wait()
		resume := second.set("Delist")
		second.finish()
		second.hasNot("it is about to leave")
		first.finish()
		first.ends("it is woken")
		resume()
		second.ends("it was told")
		e.becomes(rxArmed, "it has passed the right on")
	})
}

// TestWaiterIsDoneAsItIsAboutToSleep: it looks once more, whether or not it is to receive.
func TestWaiterIsDoneAsItIsAboutToSleep(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w := newWaiter(e)
		resume := w.set("Done")
		w.starts(forever, Plan{Sleep: transport.Park})
		w.hasNot("it has looked")
		w.finish()
		resume()
		w.ends("it has looked once more")
		require.Zero(e, e.llp.calls)

		first := e.waits(forever)
		e.holds(first, "it receives")
		w = newWaiter(e)
		resume = w.set("Enlist")
		w.starts(forever, Plan{Sleep: transport.Park})
		w.hasNot("it asks for a token")
		w.finish()
		require.Empty(e, w.token, "it has none")
		resume()
		w.ends("it has looked once more")
		first.finish()
		first.ends("it is woken")
	})
}

func TestWaiterComesBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnd(t, nil)
		e.posted = 1
		e.llp.arrives(aSend(1))
		w := e.waits(forever)
		e.becomes(rxUnstarted, "no goroutine receives before the start")
		e.conn.Start()
		w.ends("its message has come")
		require.Zero(e, e.readers.Load())
		e.conn.Abort(errTest)
		e.isOver()
	})
}

// TestSteadyWaiterReservesTheRight: no goroutine arms the connection between its waits. If the waiter does not come
// back, the sweeper arms it.
func TestSteadyWaiterReservesTheRight(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		const n = 10
		e.postReceives(n + 1)
		for i := range n {
			w := e.waits(forever)
			e.holds(w, "it receives")
			e.llp.arrives(aSend(byte(i + 1)))
			w.ends("its message has come")
			if i > 0 {
				e.becomes(rxReserved, "it is expected back")
			}
			time.Sleep(quickReturn / 2)
		}
		require.Equal(e, 2, e.llp.arms, "at the start, and after the first wait")

		e.llp.arrives(aSend(n + 1))
		e.becomes(rxReserved, "the poller does not tell of input")
		time.Sleep(reserveTime)
		e.becomes(rxArmed, "it has not come back")
		require.EqualValues(e, 1, e.readers.Load(), "a reader has received what came meanwhile")
		require.Equal(e, n+1, e.delivered)
		require.Equal(e, 3+1, e.llp.arms)
	})
}

func TestWaiterThatComesBackLaterReservesNothing(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		for range 3 {
			w := e.waits(forever)
			e.holds(w, "it receives")
			w.finish()
			w.ends("it is woken")
			e.becomes(rxArmed, "it is not expected back")
			time.Sleep(quickReturn)
		}
		require.Zero(e, e.alarms.Load())
	})
}

// TestWaiterIsGivenTheRightThatIsReserved: the right was reserved for another waiter, which is gone.
func TestWaiterIsGivenTheRightThatIsReserved(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.reserves()
		other := e.waits(forever)
		e.holds(other, "it receives")
		time.Sleep(time.Second)
		e.holds(other, "the sweeper leaves it alone")
		other.finish()
		other.ends("it is woken")
	})
}

// reserves lets waiters come and go until the right is reserved.
func (e *end) reserves() {
	e.Helper()
	for range 2 {
		w := e.waits(forever)
		e.holds(w, "it receives")
		w.finish()
		w.ends("it is woken")
	}
	e.becomes(rxReserved, "it is expected back")
}

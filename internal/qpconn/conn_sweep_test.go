package qpconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
)

// withOneSweeper runs f with two connections of one Sweeper, and ends them. The Sweeper uses the alarm of the first.
func withOneSweeper(t *testing.T, f func(a, b *end)) {
	t.Helper()
	inBubble(t, oneABatch, func(a *end) {
		shared := func(e *end, c *Config) {
			oneABatch(e, c)
			c.Sweeper = a.conn.sweeper
		}
		b := newEnd(a.T, shared)
		b.conn.Start()
		synctest.Wait()
		f(a, b)
		b.conn.Abort(errTest)
		b.isOver()
	})
}

// TestRightIsReservedAgain: the Sweeper ends each reservation, even if its alarm could not be set the time before.
func TestRightIsReservedAgain(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		for range 3 {
			e.reserves()
			time.Sleep(reserveTime)
			e.becomes(rxArmed, "no waiter has come back")
		}
		e.noAlarm.Store(true)
		for range 2 {
			w := e.waits(forever)
			e.holds(w, "it receives")
			w.finish()
			w.ends("it is woken")
		}
		e.becomes(rxArmed, "nothing is reserved without an alarm")
		e.noAlarm.Store(false)
		e.reserves()
		time.Sleep(reserveTime)
		e.becomes(rxArmed, "no waiter has come back")
	})
}

// TestRightIsReservedWhileTheSweeperLooks: the Sweeper looks at another connection meanwhile.
func TestRightIsReservedWhileTheSweeperLooks(t *testing.T) {
	withOneSweeper(t, func(a, b *end) {
		a.lingers()
		resume := a.llp.set("Wake")
		time.Sleep(2 * lingerTime)
		synctest.Wait()
		require.True(t, a.llp.reached("Wake"), "the reader of the first one is told to leave")
		b.reserves()
		resume()
		a.becomes(rxArmed, "it has left")
		time.Sleep(2 * reserveTime)
		b.becomes(rxArmed, "no waiter has come back")
	})
}

// TestNothingIsSweptWhereNothingCanBeArmed: the Sweeper of an RNIC needs a goroutine that waits for the kernel. Within a
// bubble of testing/synctest, time would stand still from then on.
func TestNothingIsSweptWhereNothingCanBeArmed(t *testing.T) {
	noArm := func(e *end, c *Config) { e.llp.noArm = true; oneABatch(e, c) }
	inBubble(t, noArm, func(e *end) {
		e.llp.arrives(aSend(1))
		e.becomes(rxStalled, "no receive is posted")
		e.expectsAWaiter()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.hasSent(2*moreThanAShare, "the writer sends the rest")
		require.Zero(e, e.alarms.Load())
	})
	inBubble(t, oneABatch, func(e *end) {
		w, resume := e.offersToAWaiter()
		e.llp.change(func() { e.llp.noArm = true })
		resume()
		w.ends("it has what it waits for")
		e.hasSent(moreThanAShare, "the reader, which has started, sends the rest")
		require.Zero(e, e.alarms.Load())
	})
}

// TestConnectionIsOnTheListOnce: however often its right to receive is reserved.
func TestConnectionIsOnTheListOnce(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		for range 3 {
			e.reserves()
		}
		s := e.conn.sweeper
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Equal(e, []*Conn{e.conn}, s.list)
	})
}

// TestSweeperComesSooner: it comes before the time its alarm was set for, if another connection needs that.
func TestSweeperComesSooner(t *testing.T) {
	withOneSweeper(t, func(a, b *end) {
		a.lingers()
		require.EqualValues(t, 1, a.alarms.Load())
		time.Sleep(reserveTime)
		synctest.Wait()
		require.EqualValues(t, 1, a.alarms.Load(), "a reader may linger for longer")
		b.reserves()
		time.Sleep(reserveTime)
		b.becomes(rxArmed, "no waiter has come back")
		a.holds(nil, "the reader lingers")
	})
}

// TestSweeperComesTooSoon: the alarm was set for another connection, and this one is not due.
func TestSweeperComesTooSoon(t *testing.T) {
	const later = reserveTime / 2
	withOneSweeper(t, func(a, b *end) {
		a.reserves()
		time.Sleep(later)
		b.reserves()
		time.Sleep(reserveTime - later)
		a.becomes(rxArmed, "no waiter has come back")
		b.becomes(rxReserved, "it may come back")
		time.Sleep(later)
		b.becomes(rxArmed, "it has not")
	})
	withOneSweeper(t, func(a, b *end) {
		b.expectsAWaiter()
		a.reserves()
		time.Sleep(later)
		b.queues(rdmap.KindWrite, moreThanAShare, nil)
		b.sends(txOffered, "a waiter is expected")
		time.Sleep(reserveTime - later)
		a.becomes(rxArmed, "no waiter has come back")
		b.sends(txOffered, "one may still come")
		time.Sleep(later)
		b.hasSent(2*moreThanAShare, "none has come")
	})
	withOneSweeper(t, func(a, b *end) {
		w, resume := b.offersToAWaiter()
		time.Sleep(later)
		a.reserves()
		time.Sleep(later)
		resume()
		w.ends("it has what it waits for")
		time.Sleep(reserveTime - later)
		a.becomes(rxArmed, "no waiter has come back")
		b.sends(txOffered, "the waiter may be back soon")
		time.Sleep(later)
		b.hasSent(moreThanAShare, "it has not come back")
	})
}

// TestWaiterIsExpectedOnce: once for each wait that has ended.
func TestWaiterIsExpectedOnce(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.expectsAWaiter()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.sends(txOffered, "a waiter has come after the last share")
		time.Sleep(reserveTime)
		e.hasSent(2*moreThanAShare, "none has come")
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.hasSent(3*moreThanAShare, "none is expected any more")
	})
}

// TestWaiterThatHasReceivedIsExpected: after the next share, too.
func TestWaiterThatHasReceivedIsExpected(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.hasSent(moreThanAShare, "no waiter is expected")
		w := e.waits(forever)
		e.holds(w, "it receives")
		w.finish()
		w.ends("it is woken")
		e.becomes(rxArmed, "nothing is reserved for it")
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.sends(txOffered, "a waiter has come after the last share")
	})
}

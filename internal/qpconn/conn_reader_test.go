package qpconn

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lingers sends messages to the connection until the reader waits for the next one.
func (e *end) lingers() {
	e.Helper()
	for range 2 {
		e.llp.arrives(aWrite)
		synctest.Wait()
	}
	e.holds(nil, "the reader lingers")
}

func TestReaderIsStartedByInput(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.becomes(rxArmed, "nothing has come")
		require.Zero(e, e.tasks.Count(), "an idle connection has no goroutine")
		e.llp.arrives(aWrite)
		e.becomes(rxArmed, "nothing more comes")
		require.EqualValues(e, 1, e.readers.Load())
		require.Zero(e, e.tasks.Count())
	})
}

func TestReaderIsStartedByInputThatWasThereAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnd(t, nil)
		e.posted = 1
		e.llp.arrives(aSend(1))
		e.conn.Start()
		e.becomes(rxArmed, "a reader has received it")
		require.Equal(e, 1, e.delivered)
		e.conn.Abort(errTest)
		e.isOver()
	})
}

// TestReaderLingersWhereMessagesAreClose: it is swept when messages stop coming.
func TestReaderLingersWhereMessagesAreClose(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.lingers()
		began := e.readers.Load()
		for range 10 {
			time.Sleep(lingerTime * 9 / 10)
			e.holds(nil, "another comes in time")
			e.llp.arrives(aWrite)
		}
		e.holds(nil, "it lingers")
		time.Sleep(lingerTime - time.Microsecond)
		e.holds(nil, "not for long enough yet")
		time.Sleep(lingerTime)
		e.becomes(rxArmed, "nothing has come")
		require.Equal(e, began, e.readers.Load(), "it was the same reader all the while")
		require.Zero(e, e.tasks.Count())

		alarms := e.alarms.Load()
		time.Sleep(time.Hour)
		require.Equal(e, alarms, e.alarms.Load(), "the sweeper has nothing to do")
	})
}

func TestReaderDoesNotLingerWhereMessagesAreFarApart(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		for i := range 5 {
			e.llp.arrives(aWrite)
			e.becomes(rxArmed, "waiting would be useless")
			require.EqualValues(e, i+1, e.readers.Load())
			time.Sleep(lingerTime)
		}
		require.Zero(e, e.alarms.Load())
	})
}

func TestWaiterComesWhileTheReaderLingers(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(2)
		for i := range 2 {
			e.lingers()
			w := e.waits(forever)
			e.holds(w, "the reader gives the right up")
			require.Zero(e, e.tasks.Count(), "and ends")
			e.llp.arrives(aSend(byte(i + 1)))
			w.ends("its message has come")
			time.Sleep(time.Second)
			e.becomes(rxArmed, "no goroutine is left")
		}
		e.lingers()
		ctx, cancel := context.WithCancel(forever)
		w := e.waits(ctx)
		e.holds(w, "the reader gives the right up")
		cancel()
		w.ends("its context has")
		e.becomes(rxArmed, "no goroutine is left")
	})
}

// TestWaiterComesWhileTheReaderRuns: it gets the right when the reader has read all input.
func TestWaiterComesWhileTheReaderRuns(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		resume := e.set("Received")
		e.llp.arrives(aWrite)
		synctest.Wait()
		require.True(e, e.reached("Received"), "the reader runs")
		w := e.waits(forever)
		w.hasNot("its message has not come")
		require.Equal(e, 1, w.asked, "it sleeps")
		resume()
		e.holds(w, "the reader has read all")
		e.llp.arrives(aSend(1))
		w.ends("its message has come")
		require.EqualValues(e, 1, e.readers.Load())
	})
}

// TestReaderReceivesForAWaiter: a waiter that came meanwhile gets its message from the reader, and then not the right.
func TestReaderReceivesForAWaiter(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		resume := e.set("Received")
		e.llp.arrives(aWrite)
		synctest.Wait()
		w := e.waits(forever)
		synctest.Wait()
		e.llp.arrives(aSend(1))
		resume()
		w.ends("the reader has received its message")
		time.Sleep(time.Second)
		e.becomes(rxArmed, "no goroutine waits")
	})
}

// TestWaiterComesWhileTheReaderLeaves: the sweeper has told the reader to leave, and the reader still holds the right.
// The order to leave does not apply to the next holder.
func TestWaiterComesWhileTheReaderLeaves(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		e.lingers()
		resume := e.llp.set("Receive")
		time.Sleep(2 * lingerTime)
		synctest.Wait()
		require.True(e, e.llp.reached("Receive"), "the reader looks once more")
		e.becomes(rxRecalled, "it was told")
		w := e.waits(forever)
		w.hasNot("its message has not come")
		resume()
		e.holds(w, "the reader has left")
		e.llp.arrives(aSend(1))
		w.ends("its message has come")
		time.Sleep(time.Second)
		e.becomes(rxArmed, "no goroutine is left")
	})
}

// TestReaderThatWasToldToLeaveReadsWhatThereIs: it reads the input, and leaves all the same.
func TestReaderThatWasToldToLeaveReadsWhatThereIs(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		e.lingers()
		resume := e.llp.set("Receive")
		time.Sleep(2 * lingerTime)
		e.becomes(rxRecalled, "it was told")
		e.llp.arrives(aSend(1))
		resume()
		e.becomes(rxArmed, "it has left")
		require.Equal(e, 1, e.delivered)
	})
}

// TestReaderStaysWhereNothingCanBeArmed: waiters only sleep.
func TestReaderStaysWhereNothingCanBeArmed(t *testing.T) {
	noArm := func(e *end, _ *Config) { e.llp.noArm = true }
	inBubble(t, noArm, func(e *end) {
		e.postReceives(2)
		e.holds(nil, "a goroutine must stay in Receive")
		w := e.waits(forever)
		w.hasNot("its message has not come")
		e.holds(nil, "the reader keeps the right")
		time.Sleep(time.Hour)
		e.holds(nil, "and is not swept")
		e.llp.arrives(aSend(1))
		w.ends("its message has come")

		ctx, cancel := context.WithCancel(forever)
		w = e.waits(ctx)
		synctest.Wait()
		cancel()
		w.ends("its context has")

		w = e.waits(forever)
		synctest.Wait()
		w.finish()
		w.ends("it is woken")
		e.holds(nil, "the reader stays")
		require.EqualValues(e, 1, e.readers.Load())
		require.Zero(e, e.alarms.Load())
	})
}

// TestArmingFailsLater: a waiter leaves, arming fails, and a reader must stay.
func TestArmingFailsLater(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.llp.change(func() { e.llp.noArm = true })
		w.finish()
		w.ends("it is woken")
		e.holds(nil, "a reader was started")
	})
}

// TestPollerTellsLate: the poller reports input that a waiter has received, or reports twice.
func TestPollerTellsLate(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.conn.ready()
		e.conn.ready()
		e.holds(w, "it goes on")
		require.Zero(e, e.readers.Load())
		w.finish()
		w.ends("it is woken")
		e.conn.ready()
		e.becomes(rxArmed, "a reader has found nothing")
		require.EqualValues(e, 1, e.readers.Load())
	})
}

// TestWithoutAnAlarm: no right is reserved, and no reader lingers.
func TestWithoutAnAlarm(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.noAlarm.Store(true)
		for range 3 {
			w := e.waits(forever)
			e.holds(w, "it receives")
			w.finish()
			w.ends("it is woken")
			e.becomes(rxArmed, "nothing is reserved")
		}
		for range 3 {
			e.llp.arrives(aWrite)
			e.becomes(rxArmed, "the reader does not linger")
		}
		require.Zero(e, e.tasks.Count())
	})
}

// TestSweeperSweepsManyConnections: each one when it is due, with one alarm.
func TestSweeperSweepsManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*end
		for range 5 {
			e := newEnd(t, func(_ *end, c *Config) {
				if len(all) > 0 {
					c.Sweeper = all[0].conn.sweeper
				}
			})
			e.conn.Start()
			synctest.Wait()
			all = append(all, e)
		}
		for _, e := range all {
			e.reserves()
			time.Sleep(reserveTime / 10)
		}
		require.EqualValues(t, 1, all[0].alarms.Load(), "the alarm is set once for all of them")
		for _, e := range all {
			e.becomes(rxReserved, "it is not yet time")
		}
		time.Sleep(2 * reserveTime)
		for _, e := range all {
			e.becomes(rxArmed, "no waiter has come back")
		}
		alarms := all[0].alarms.Load()
		require.LessOrEqual(t, alarms, int32(len(all)+1))
		time.Sleep(time.Hour)
		require.Equal(t, alarms, all[0].alarms.Load(), "it is not set when there is nothing to do")
		for _, e := range all {
			e.conn.Abort(errTest)
			e.isOver()
		}
	})
}

package qpconn

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

func receiveWait(d time.Duration) func(e *end, c *Config) {
	return func(_ *end, c *Config) { c.ReceiveWait = d }
}

// stalls delivers a message for which there is no receive.
func (e *end) stalls(msn byte) {
	e.Helper()
	e.llp.arrives(aSend(msn))
	e.becomes(rxStalled, "there is no receive")
}

func TestMessageWaitsForAReceive(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.stalls(1)
		require.Zero(e, e.tasks.Count(), "no goroutine waits")
		time.Sleep(NoticeAfter - 1)
		synctest.Wait()
		require.Empty(e, e.heard())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(e, []string{"no receive"}, e.heard())
		e.postReceives(1)
		e.becomes(rxArmed, "the message has found one")
		require.Equal(e, 1, e.delivered)
		require.EqualValues(e, 1, e.conn.ReceiveWaits())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(e, e.heard(), 1, "that is all")

		e.stalls(2)
		time.Sleep(NoticeAfter)
		synctest.Wait()
		require.Equal(e, []string{"no receive", "no receive"}, e.heard(), "each message that waits is told of")
		e.postReceives(1)
		require.EqualValues(e, 2, e.conn.ReceiveWaits())
	})
}

func TestMessageHasWaitedShortly(t *testing.T) {
	inBubble(t, receiveWait(2*time.Second), func(e *end) {
		for msn := range byte(10) {
			e.stalls(msn + 1)
			time.Sleep(NoticeAfter / 2)
			e.postReceives(1)
			e.becomes(rxArmed, "the message has found a receive")
		}
		require.Empty(e, e.heard(), "there is nothing to be told")
	})
}

// TestMessageHasWaitedTooLong: the message is then in error.
func TestMessageHasWaitedTooLong(t *testing.T) {
	for _, limit := range []time.Duration{time.Millisecond, NoticeAfter / 2, NoticeAfter, NoticeAfter + 1, time.Minute} {
		inBubble(t, receiveWait(limit), func(e *end) {
			e.stalls(1)
			time.Sleep(limit - 1)
			e.becomes(rxStalled, "it has not waited for long enough")
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			want := []string{"overdue", "Failed"}
			if limit > NoticeAfter {
				want = append([]string{"no receive"}, want...)
			}
			require.Equal(e, want, e.heard())
			require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate])
			_, cause := e.conn.Cause()
			var f *transport.Fault
			require.ErrorAs(e, cause, &f)
			require.Equal(e, transport.DDPNoBuffer, f.Code)
			e.llp.change(func() { e.llp.fin = true })
			e.isOver()
		})
	}
}

func TestMessageWaitsForever(t *testing.T) {
	for _, limit := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1} {
		inBubble(t, receiveWait(limit), func(e *end) {
			e.stalls(1)
			time.Sleep(10 * 365 * 24 * time.Hour)
			e.becomes(rxStalled, "it still waits")
			require.Equal(e, []string{"no receive"}, e.heard())
			e.postReceives(1)
			e.becomes(rxArmed, "it has found a receive")
		})
	}
}

// TestReceiveIsPostedAsTheMessageStalls: the receive may be posted at any step of that.
func TestReceiveIsPostedAsTheMessageStalls(t *testing.T) {
	for _, place := range []string{"Received", "HasReceive", "HasReceive has looked"} {
		inBubble(t, nil, func(e *end) {
			resume := e.set(place)
			e.llp.arrives(aSend(1))
			synctest.Wait()
			require.True(e, e.reached(place))
			e.postReceives(1)
			resume()
			e.becomes(rxArmed, "it has found the receive")
			require.Equal(e, 1, e.delivered)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Empty(e, e.heard(), "no message waits")
			require.Zero(e, e.conn.ReceiveWaits())
		})
	}
}

// TestTimerOfAMessageTellsLate: the message has meanwhile found a receive, and another message waits.
func TestTimerOfAMessageTellsLate(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.stalls(1)
		e.conn.mu.Lock()
		timer := e.conn.stalled.timer
		e.conn.mu.Unlock()
		e.postReceives(1)
		e.stalls(2)
		timer.Reset(0) // as if it could no longer be stopped
		synctest.Wait()
		require.Empty(e, e.heard(), "the other has not waited for long")
	})
}

// TestWaiterWhoseMessageStalls: it is the first waiter to receive again, after the reader.
func TestWaiterWhoseMessageStalls(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		first := e.waits(forever)
		e.holds(first, "it receives")
		second := e.waits(forever)
		synctest.Wait()
		e.stalls(1)
		third := e.waits(forever)
		for _, w := range []*waiter{first, second, third} {
			w.hasNot("there is no receive")
		}
		e.postReceives(3)
		first.ends("its message has come")
		e.holds(second, "the next one receives")
		e.llp.arrives(aSend(2), aSend(3))
		second.ends("its message has come")
		third.ends("its message has come")
		e.becomes(rxArmed, "no goroutine waits")
		require.EqualValues(e, 1, e.readers.Load(), "one has tried the message again")
	})
}

// TestWaiterThatLosesTheRightIsForgotten: what it waited for does not concern the next reader.
func TestWaiterThatLosesTheRightIsForgotten(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		ctx, cancel := context.WithCancel(forever)
		w := e.waits(ctx)
		e.holds(w, "it receives")
		e.stalls(1)
		cancel()
		w.ends("its context has")
		e.becomes(rxStalled, "the message waits")
		e.postReceives(1)
		e.becomes(rxArmed, "a reader has received it")
		require.EqualValues(e, 1, e.readers.Load())
		e.lingers()
		calls := see(e.llp, func() int { return e.llp.calls })
		time.Sleep(time.Second)
		e.becomes(rxArmed, "nothing more comes")
		require.LessOrEqual(e, e.llp.calls-calls, 3, "a reader that lingers parks")
	})
}

func TestSendingGoesOnWhileAMessageWaits(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.stalls(1)
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.hasSent(moreThanAShare, "the writer has sent the rest")
		e.becomes(rxStalled, "the message waits")
	})
}

// TestARCH_11_ReadInFrontOfAMessageThatWaits: the Read is answered, although one read has brought both.
func TestARCH_11_ReadInFrontOfAMessageThatWaits(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.arrives(aRead, aSend(1))
		e.becomes(rxStalled, "the message waits")
		require.Equal(e, 1, e.llp.counts()[rdmap.OpReadResponse])
	})
}

func TestConnectionEndsWhileAMessageWaits(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.stalls(1)
		e.conn.Abort(errTest)
		e.isOver()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(e, []string{"Flush", "Ended"}, e.heard(), "nothing is told after the end")
	})
}

// TestMessageThatWaitsIsNotToldOfWhileTheConnectionEnds: the message no longer waits for anything.
func TestMessageThatWaitsIsNotToldOfWhileTheConnectionEnds(t *testing.T) {
	inBubble(t, receiveWait(NoticeAfter+NoticeAfter/2), func(e *end) {
		e.stalls(1)
		time.Sleep(NoticeAfter / 2)
		require.True(e, e.conn.Fail(errTest))
		time.Sleep(NoticeAfter + NoticeAfter/4)
		synctest.Wait()
		require.Equal(e, []string{"Failed"}, e.heard())
		require.Equal(e, Terminating, e.conn.Stage(), "the peer has not ended its half")
	})
}

// TestMessageThatWaitsComesTooLate: this side ends its half while the message waits.
func TestMessageThatWaitsComesTooLate(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.stalls(1)
		e.drains()
		e.endsSending()
		synctest.Wait()
		reason, cause := e.conn.Cause()
		require.Equal(e, BadClose, reason)
		require.ErrorIs(e, cause, rdmap.ErrLate)
	})
}

// TestMessageStallsAsTheReceivesEnd: whether our half ends with them or not yet, no message waits for a receive that
// will not be posted.
func TestMessageStallsAsTheReceivesEnd(t *testing.T) {
	for _, place := range []string{"Received", "HasReceive", "HasReceive has looked"} {
		for _, late := range []bool{false, true} {
			inBubble(t, nil, func(e *end) {
				resume := e.set(place)
				e.llp.arrives(aSend(1))
				synctest.Wait()
				require.True(e, e.reached(place))
				e.drains()
				if late {
					e.endsSending()
				} else {
					e.endsReceives()
				}
				resume()
				synctest.Wait()
				require.Equal(e, !late && place == "HasReceive has looked", e.conn.ResumeStalled(), "it waits already, and is told now")
				synctest.Wait()
				_, cause := e.conn.Cause()
				if late {
					require.ErrorIs(e, cause, rdmap.ErrLate)
					return
				}
				var f *transport.Fault
				require.ErrorAs(e, cause, &f)
				require.Equal(e, transport.DDPNoBuffer, f.Code)
			})
		}
	}
}

// TestWaiterLeavesAsTheReceiveIsPosted: the waiter had found no receive for the message. The message does not wait for
// more input.
func TestWaiterLeavesAsTheReceiveIsPosted(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		ctx, cancel := context.WithCancel(forever)
		w := e.waits(ctx)
		e.holds(w, "it receives")
		e.stalls(1)
		resume := w.set("Delist")
		cancel()
		synctest.Wait()
		require.True(e, w.reached("Delist"), "it has seen the end of its context")
		e.postReceives(1)
		resume()
		w.ends("it leaves")
		e.becomes(rxArmed, "a reader has received the message")
		require.Equal(e, 1, e.delivered)
	})
}

// TestReceiveIsPostedBeforeTheStart: the message that finds no receive begins to wait at the start.
func TestReceiveIsPostedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnd(t, receiveWait(time.Minute))
		e.llp.arrives(aSend(1), aSend(2))
		e.postReceives(1)
		synctest.Wait()
		e.conn.Start()
		e.becomes(rxStalled, "the second message waits")
		require.Equal(e, 1, e.delivered)
		e.postReceives(1)
		e.becomes(rxArmed, "it has found a receive")
		require.Equal(e, 2, e.delivered)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(e, e.heard(), "no message waits")
		e.conn.Abort(errTest)
		e.isOver()
	})
}

// TestMessageStallsAsTheConnectionEnds: the Owner has ended, and is not asked for a receive.
func TestMessageStallsAsTheConnectionEnds(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.set("Received")
		e.llp.arrives(aSend(1))
		synctest.Wait()
		require.True(e, e.reached("Received"))
		e.conn.Abort(errTest)
		synctest.Wait()
		answer := e.set("HasReceive")
		resume()
		synctest.Wait()
		asked := e.reached("HasReceive")
		answer()
		require.False(e, asked)
		e.isOver()
	})
}

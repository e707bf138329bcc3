package qpconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// oneABatch makes each message a batch, so that shareBatches messages are a share.
func oneABatch(e *end, _ *Config) { e.llp.most = 1 }

// moreThanAShare is a number of messages that takes two shares.
const moreThanAShare = shareBatches + 1

func (e *end) hasSent(writes int, expectation string) {
	e.Helper()
	synctest.Wait()
	require.Equal(e, writes, e.llp.counts()[rdmap.OpWrite], "%s: %s", expectation, e.state())
}

func TestPosterSends(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.queues(rdmap.KindWrite, 3, nil)
		require.Equal(e, 3, e.llp.counts()[rdmap.OpWrite], "before Post returns")
		e.sends(txIdle, "there is nothing more")
		require.Zero(e, e.writers.Load())
		require.Len(e, e.statuses, 3)
	})
}

// TestPosterSendsForAnother: the other posts meanwhile, and does not wait.
func TestPosterSendsForAnother(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.llp.set("Flush")
		go e.queues(rdmap.KindWrite, 1, nil)
		synctest.Wait()
		require.True(e, e.llp.reached("Flush"), "the first one sends")
		e.queues(rdmap.KindWrite, 1, nil)
		e.sends(txSendingMore, "the second one has returned")
		e.hasSent(0, "nothing is out yet")
		resume()
		e.hasSent(2, "the first one sends both")
		e.sends(txIdle, "there is nothing more")
	})
}

func TestPostedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnd(t, nil)
		_, err := e.conn.stream.Post(1, func(_ int, r *rdmap.Request) error {
			r.Kind = rdmap.KindWrite
			return nil
		})
		require.NoError(e, err)
		e.conn.Start()
		e.hasSent(1, "the start sends it")
		e.conn.Abort(errTest)
		e.isOver()
	})
}

func TestWriterSendsWhatAShareLeavesIfNoGoroutineReceives(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.queues(rdmap.KindWrite, 3*moreThanAShare, nil)
		e.hasSent(3*moreThanAShare, "the writer sends the rest")
		require.EqualValues(e, 1, e.writers.Load())
		require.Zero(e, e.tasks.Count(), "and ends")
	})
}

// TestHolderSendsWhatAShareLeaves: a waiter that receives, or a reader that lingers, is woken.
func TestHolderSendsWhatAShareLeaves(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.hasSent(moreThanAShare, "the waiter sends the rest")
		e.holds(w, "it receives again")
		w.finish()
		w.ends("it is woken")
		time.Sleep(time.Second)

		e.lingers()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.hasSent(2*moreThanAShare, "the reader sends the rest")
		require.Zero(e, e.writers.Load())
	})
}

// expectsAWaiter sends a share and reports a wait, so that another wait is expected after the next share.
func (e *end) expectsAWaiter() {
	e.Helper()
	e.queues(rdmap.KindWrite, moreThanAShare, nil)
	e.hasSent(moreThanAShare, "all of it")
	e.conn.Waited()
}

// offersToAWaiter has more than a share to send while a waiter receives, which has what it waits for. The waiter is woken,
// and continues when resume is called.
func (e *end) offersToAWaiter() (w *waiter, resume func()) {
	e.Helper()
	w = e.waits(forever)
	e.holds(w, "it receives")
	w.done.Store(true)
	resume = w.set("Done")
	e.queues(rdmap.KindWrite, moreThanAShare, nil)
	e.sends(txOffered, "the waiter is woken")
	return w, resume
}

// TestExpectedWaiterSendsWhatAShareLeaves: it sends the rest when it comes.
func TestExpectedWaiterSendsWhatAShareLeaves(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.expectsAWaiter()
		began := e.writers.Load()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.sends(txOffered, "a waiter has come after the last share")
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.hasSent(2*moreThanAShare, "before that it has sent the rest")
		require.Equal(e, began, e.writers.Load())
		w.finish()
		w.ends("it is woken")
	})
}

// TestWriterSendsWhatAnExpectedWaiterDoesNot: the sweeper starts the writer.
func TestWriterSendsWhatAnExpectedWaiterDoesNot(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.expectsAWaiter()
		began := e.writers.Load()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.sends(txOffered, "a waiter has come after the last share")
		time.Sleep(reserveTime)
		e.sends(txIdle, "none has come")
		e.hasSent(2*moreThanAShare, "the writer has sent it")
		require.Equal(e, began+1, e.writers.Load())
	})
}

// TestWriterSendsWhatAWaiterDoesNotThatIsDone: what was offered to the waiter stays offered for a while.
func TestWriterSendsWhatAWaiterDoesNotThatIsDone(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		w, resume := e.offersToAWaiter()
		time.Sleep(reserveTime)
		e.sends(txOffered, "the waiter is at work")
		resume()
		w.ends("it was woken")
		time.Sleep(reserveTime - 1)
		e.sends(txOffered, "it may be back soon")
		e.becomes(rxArmed, "input is received meanwhile")
		time.Sleep(time.Nanosecond)
		e.hasSent(moreThanAShare, "the writer has sent the rest")
		require.EqualValues(e, 1, e.writers.Load())
	})
}

func TestNoWaiterIsExpected(t *testing.T) {
	for name, expected := range map[string]func(e *end){
		"none has come": func(e *end) { e.hasSent(moreThanAShare, "all of it") },
		"that was long ago": func(e *end) {
			e.conn.Waited()
			time.Sleep(shareTime)
		},
	} {
		inBubble(t, oneABatch, func(e *end) {
			e.queues(rdmap.KindWrite, moreThanAShare, nil)
			synctest.Wait()
			expected(e)
			e.queues(rdmap.KindWrite, moreThanAShare, nil)
			e.hasSent(2*moreThanAShare, "at once: "+name)
			require.EqualValues(e, 2, e.writers.Load(), name)
		})
	}
}

// TestPosterSendsWhatWasOffered: it sends that before its own messages.
func TestPosterSendsWhatWasOffered(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.expectsAWaiter()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.sends(txOffered, "a waiter is expected")
		e.queues(rdmap.KindWrite, 1, nil)
		e.hasSent(2*moreThanAShare+1, "both")
	})
}

// TestShareIsOfferedWhereTheRightToReceiveIsReserved: the share is offered to the waiter that has the reservation.
func TestShareIsOfferedWhereTheRightToReceiveIsReserved(t *testing.T) {
	for _, comes := range []bool{true, false} {
		inBubble(t, oneABatch, func(e *end) {
			e.reserves()
			e.queues(rdmap.KindWrite, moreThanAShare, nil)
			e.sends(txOffered, "the waiter is expected back")
			if comes {
				w := e.waits(forever)
				e.holds(w, "it receives")
				require.Zero(e, e.writers.Load())
				w.finish()
			} else {
				time.Sleep(reserveTime)
				e.becomes(rxArmed, "it has not come back")
			}
			e.hasSent(moreThanAShare, "the rest")
		})
	}
}

// TestWriterWaitsForTheNetwork: no other goroutine does.
func TestWriterWaitsForTheNetwork(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		e.llp.change(func() { e.llp.full = true })
		done := newWaiter(e)
		e.queues(rdmap.KindWrite, 1, done)
		e.sends(txWriter, "the poster has returned")
		require.EqualValues(e, 1, e.writers.Load())
		require.Equal(e, 1, e.llp.waits)
		e.queues(rdmap.KindWrite, 1, nil)
		e.sends(txWriterMore, "so has the next one")

		w := e.waits(forever)
		e.holds(w, "it receives meanwhile")
		e.llp.arrives(aSend(1))
		w.ends("its message has come")
		done.starts(forever, Plan{Sleep: transport.Park})
		e.holds(done, "it waits for what was posted")
		e.llp.change(func() { e.llp.full = false })
		done.ends("its Write is out")
		e.hasSent(2, "both")
		require.Zero(e, e.tasks.Count(), "the writer has ended")
		require.EqualValues(e, 1, e.writers.Load())
	})
}

// TestWriterLeavesWhatItNeedNotWaitFor: the network has taken a batch at once, so the writer leaves the rest to others.
func TestWriterLeavesWhatItNeedNotWaitFor(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 3*moreThanAShare, nil)
		e.sends(txWriter, "the poster has returned")
		resume := w.set("Done")
		e.llp.change(func() { e.llp.full = false })
		e.hasSent(2, "the one that had to wait, and the one that had not")
		e.sends(txOffered, "the waiter is woken")
		require.Zero(e, e.tasks.Count(), "the writer has ended")
		resume()
		e.hasSent(3*moreThanAShare, "the waiter sends the rest")
		require.EqualValues(e, 1, e.writers.Load())
		w.finish()
		w.ends("it is woken")
	})
}

// TestWaiterDoesNotWaitForTheNetwork: even with an answer to send.
func TestWaiterDoesNotWaitForTheNetwork(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.llp.change(func() { e.llp.full = true })
		e.llp.arrives(aRead)
		e.sends(txWriter, "the answer cannot leave")
		e.holds(w, "it receives again")
		e.llp.arrives(aSend(1))
		w.ends("its message has come")
		e.llp.change(func() { e.llp.full = false })
		e.sends(txIdle, "there is nothing more")
		require.Equal(e, 1, e.llp.counts()[rdmap.OpReadResponse])
	})
}

func TestReaderSendsTheAnswers(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.arrives(aRead)
		e.becomes(rxArmed, "a reader has received it")
		require.Equal(e, 1, e.llp.counts()[rdmap.OpReadResponse])
		require.Zero(e, e.writers.Load())
	})
}

func TestResponderMayNotSendBeforeTheFirstSegment(t *testing.T) {
	fenced := func(e *end, _ *Config) { e.llp.isFenced = true }
	inBubble(t, fenced, func(e *end) {
		e.queues(rdmap.KindWrite, 1, nil)
		e.queues(rdmap.KindWrite, 1, nil)
		e.hasSent(0, "it waits")
		e.sends(txIdle, "no goroutine waits")
		require.Contains(e, e.heard(), "fenced")
		require.True(e, e.conn.Fenced())
		e.llp.arrives(aWrite)
		e.hasSent(2, "what was posted")
		require.False(e, e.conn.Fenced())
	})
}

package qpconn

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

var errAbort = errors.New("it is enough")

// aborts requires that Abort ends the connection at once, whatever its state.
func (e *end) aborts() {
	e.Helper()
	e.conn.Abort(errAbort)
	time.Sleep(e.llp.looks)
	e.endedWith(Aborted, errAbort, "Abort")
	require.ErrorIs(e, e.llp.closed, net.ErrClosed)
}

func TestAbort(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(e *end, c *Config)
		before func(e *end)
	}{
		"armed":    {before: func(*end) {}},
		"reserved": {before: (*end).reserves},
		"stalled":  {before: func(e *end) { e.stalls(1) }},
		"waiter in Receive": {before: func(e *end) {
			w := e.waits(forever)
			e.holds(w, "it receives")
			e.queues(rdmap.KindRead, 1, w)
			other := e.waits(forever)
			e.queues(rdmap.KindRead, 1, other)
		}},
		"waiter that polls": {before: func(e *end) {
			e.llp.looks = time.Microsecond
			w := e.waitsWith(forever, Plan{Poll: time.Hour, Sleep: transport.Park})
			e.queues(rdmap.KindRead, 1, w)
			time.Sleep(10 * time.Microsecond)
		}},
		"reader that lingers": {before: (*end).lingers},
		"reader that stays":   {set: func(e *end, _ *Config) { e.llp.noArm = true }, before: func(e *end) { e.holds(nil, "it stays") }},
		"offered": {set: oneABatch, before: func(e *end) {
			e.expectsAWaiter()
			e.queues(rdmap.KindWrite, moreThanAShare, nil)
			e.sends(txOffered, "a waiter is expected")
		}},
		"offered and reserved": {set: oneABatch, before: func(e *end) {
			e.reserves()
			e.queues(rdmap.KindWrite, moreThanAShare, nil)
			e.sends(txOffered, "a waiter is expected back")
		}},
		"writer in Flush": {before: func(e *end) {
			e.llp.change(func() { e.llp.full = true })
			e.queues(rdmap.KindWrite, 1, nil)
			e.sends(txWriter, "it waits for the network")
		}},
		"fenced": {set: func(e *end, _ *Config) { e.llp.isFenced = true }, before: func(e *end) { e.queues(rdmap.KindWrite, 1, nil) }},
		"waiter, and writer in Flush": {before: func(e *end) {
			e.llp.change(func() { e.llp.full = true })
			w := e.waits(forever)
			e.holds(w, "it receives")
			e.queues(rdmap.KindRead, 1, w)
		}},
		"draining": {before: func(e *end) {
			e.queues(rdmap.KindRead, 1, nil)
			e.drains()
		}},
		"closing": {before: func(e *end) {
			e.drains()
			e.endsSending()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.set, func(e *end) {
				c.before(e)
				e.aborts()
			})
		})
	}
}

// TestAbortOfAnEndThatIsUnderWay: Abort does not change the reason of that end.
func TestAbortOfAnEndThatIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		reason Reason
		before func(e *end)
	}{
		"reader in Discard, for our Terminate": {Terminated, func(e *end) { e.conn.Fail(errTest) }},
		"reader in Discard, for the peer's":    {TerminateReceived, func(e *end) { e.llp.arrives(aTerminate) }},
		"our Terminate waits for the network":  {Terminated, func(e *end) { e.llp.change(func() { e.llp.full = true }); e.conn.Fail(errTest) }},
		"reader in Discard, after our own end": {BadClose, func(e *end) { e.drains(); e.endsSending(); e.llp.arrives(aSend(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(e *end) {
				c.before(e)
				synctest.Wait()
				e.conn.Abort(errAbort)
				e.isOver()
				reason, cause := e.conn.Cause()
				require.Equal(e, c.reason, reason)
				require.NotErrorIs(e, cause, errAbort)
			})
		})
	}
}

// TestAbortAsAGracefulEndCompletes: nothing is left to abort.
func TestAbortAsAGracefulEndCompletes(t *testing.T) {
	for _, place := range []string{"Leaving", "Flush"} {
		t.Run(place, func(t *testing.T) {
			inBubble(t, nil, func(e *end) {
				resume := e.set(place)
				e.peerEnds()
				synctest.Wait()
				require.True(e, e.reached(place))
				e.conn.Abort(errAbort)
				stage := e.conn.Stage()
				resume()
				require.Equal(e, Closing, stage, "it stays")
				e.endedWith(Closed, nil, "Close")
			})
		})
	}
}

// TestAbortWhileThePollerReports: the report may come before the abort, and may then start a reader, or after it.
func TestAbortWhileThePollerReports(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		ready := see(e.llp, func() (ready func()) {
			ready, e.llp.ready = e.llp.ready, nil
			return ready
		})
		e.aborts()
		ready()
		synctest.Wait()
		require.Zero(e, e.readers.Load(), "the end has needed none")
	})
	inBubble(t, nil, func(e *end) {
		e.conn.ready()
		e.aborts()
	})
}

// TestAbortBeforeTheStart: where the Abort is over before the Start, the LLP is not read from.
func TestAbortBeforeTheStart(t *testing.T) {
	for _, over := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := newEnd(t, nil)
			e.conn.Abort(errAbort)
			if over {
				synctest.Wait()
			}
			e.conn.Start()
			e.endedWith(Aborted, errAbort, "Abort")
			if over {
				require.Zero(t, e.llp.calls)
			}
		})
	}
}

// TestEndWaitsForItsGoroutines: the end waits for the receiving goroutine, for the sending one, and for Failed.
func TestEndWaitsForItsGoroutines(t *testing.T) {
	for _, place := range []string{"Received", "Sent", "Failed"} {
		t.Run(place, func(t *testing.T) {
			inBubble(t, nil, func(e *end) {
				resume := e.set(place)
				switch place {
				case "Received":
					e.llp.arrives(aWrite)
				case "Sent":
					go e.queues(rdmap.KindWrite, 1, nil)
				case "Failed":
					go e.conn.Fail(errTest)
				}
				synctest.Wait()
				require.True(e, e.reached(place))
				e.conn.Abort(errAbort)
				synctest.Wait()
				require.NotContains(e, e.heard(), "Flush")
				require.Equal(e, Failed, e.conn.Stage())
				resume()
				e.endedWith(Aborted, errAbort, "Abort")
			})
		})
	}
}

// TestFirstCauseStays: neither a cause that comes after the end nor a lesser cause that comes during an abort replaces
// it.
func TestFirstCauseStays(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.peerEnds()
		e.endedWith(Closed, nil, "Close")
		e.conn.Abort(errAbort)
		e.endedWith(Closed, nil, "Close")
	})
	inBubble(t, nil, func(e *end) {
		resume := e.set("Sent")
		go e.queues(rdmap.KindWrite, 1, nil)
		synctest.Wait()
		require.True(e, e.reached("Sent"))
		e.conn.Abort(errAbort)
		require.Equal(e, Failed, e.conn.Stage())
		require.True(e, e.conn.Fail(errTest))
		require.Equal(e, Failed, e.conn.Stage(), "it never goes back")
		resume()
		e.endedWith(Aborted, errAbort, "Abort")
	})
}

// TestFailAfterAnEndThatHasWaitedForFail: the Owner learns of the end only once.
func TestFailAfterAnEndThatHasWaitedForFail(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.set("Failed")
		go e.conn.Fail(errTest)
		synctest.Wait()
		require.True(e, e.reached("Failed"))
		e.conn.Abort(errAbort)
		synctest.Wait()
		require.Equal(e, []string{"Abort"}, e.llp.ends)
		require.Zero(e, count(e.heard(), "Ended"), "the end waits for Fail")
		resume()
		e.isOver()
		require.False(e, e.conn.Fail(errTest))
		e.isOver()
	})
}

// TestAfterTheEnd: no call has an effect any more.
func TestAfterTheEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.aborts()
		calls := see(e.llp, func() int { return e.llp.calls })
		w := newWaiter(e)
		w.starts(forever, Plan{Sleep: transport.Park})
		w.hasNot("it sleeps")
		e.conn.Post()
		e.conn.Nudge()
		e.conn.Resume()
		e.conn.ready()
		e.conn.Waited()
		e.conn.Drain()
		e.conn.EndSending()
		e.conn.PeerTerminated(errTest)
		require.False(e, e.conn.Fail(errTest))
		e.conn.Abort(errTest)
		w.finish()
		w.ends("it is woken")
		time.Sleep(time.Hour)
		e.endedWith(Aborted, errAbort, "Abort")
		require.Equal(e, calls, e.llp.calls)
		require.Empty(e, e.llp.sent)
	})
}

// TestManyEndsAtOnce: whatever causes coincide, the connection ends once, and so do all waits.
func TestManyEndsAtOnce(t *testing.T) {
	acts := map[int]func(e *end){
		0: func(e *end) { e.conn.Fail(errTest) },
		1: func(e *end) { e.conn.Abort(errAbort) },
		2: func(e *end) { e.drains(); e.conn.stream.Shut(); e.conn.EndSending() },
		3: func(e *end) { e.peerEnds() },
		4: func(e *end) { e.llp.arrives(aTerminate) },
		5: func(e *end) { e.llp.arrives(aSend(1), aSend(2)) },
		6: func(e *end) { e.llp.arrives(notASegment) },
		7: func(e *end) { e.llp.change(func() { e.llp.broken = errBroken }) },
		8: func(e *end) { e.llp.change(func() { e.llp.full = !e.llp.full }) },
		9: func(e *end) { e.postReceives(2) },
	}
	const rounds = 400
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 1))
		inBubble(t, oneABatch, func(e *end) {
			var all sync.WaitGroup
			reads := []*waiter{newWaiter(e), newWaiter(e), newWaiter(e)}
			for i, w := range reads {
				e.queues([]rdmap.Kind{rdmap.KindRead, rdmap.KindWrite}[i%2], 1+random.IntN(4), w)
				if random.IntN(3) > 0 {
					synctest.Wait()
				}
				w.starts(forever, Plan{Sleep: transport.Park})
			}
			for range 1 + random.IntN(5) {
				act := acts[random.IntN(len(acts))]
				all.Go(func() { act(e) })
				if random.IntN(3) == 0 {
					synctest.Wait()
				}
			}
			all.Wait()
			e.conn.Abort(errAbort)
			synctest.Wait()
			for _, w := range reads {
				w.ends("its work is done or flushed")
			}
		})
	}
}

// TestAbortAsAMessageStalls: the LLP hands the message up again and again, even after it was closed.
func TestAbortAsAMessageStalls(t *testing.T) {
	for _, waits := range []bool{false, true} {
		inBubble(t, nil, func(e *end) {
			if waits {
				w := e.waits(forever)
				e.holds(w, "it receives")
				e.queues(rdmap.KindRead, 1, w)
				defer w.ends("its Read is flushed")
			}
			resume := e.set("Received")
			e.llp.arrives(aSend(1))
			synctest.Wait()
			require.True(e, e.reached("Received"))
			e.conn.Abort(errAbort)
			resume()
			e.endedWith(Aborted, errAbort, "Abort")
		})
	}
}

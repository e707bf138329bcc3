package qpconn

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

var errBroken = errors.New("the network has failed")

func TestFailTellsThePeer(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.queues(rdmap.KindRead, 1, nil)
		require.True(e, e.conn.Fail(errBroken))
		require.False(e, e.conn.Fail(errTest), "the stream is ending already")
		e.becomes(rxBusy, "a reader discards the input")
		require.Equal(e, Terminating, e.conn.Stage())
		require.Equal(e, []rdmap.Opcode{rdmap.OpReadRequest, rdmap.OpTerminate}, e.llp.sent)
		require.Equal(e, 1, e.llp.shut, "after it our half ends")
		require.Equal(e, []string{"Failed"}, e.heard())
		e.llp.arrives(notASegment)
		time.Sleep(PeerEndTime - 1)
		require.Equal(e, Terminating, e.conn.Stage(), "the peer has some time")
		e.peerEnds()
		e.endedWith(Terminated, errBroken, "Close")
		require.False(e, e.conn.Fail(errTest), "it has ended")
		require.Equal(e, []rdmap.Status{rdmap.StatusFlushed}, e.statuses)
	})
}

// TestPeerAnswersATerminateWhileFailRuns: another goroutine has sent the Terminate, and the peer has ended
// its half because of it, before Fail has recorded why the connection ends.
func TestPeerAnswersATerminateWhileFailRuns(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.set("Failed")
		go e.conn.Fail(errBroken)
		synctest.Wait()
		require.True(e, e.reached("Failed"))
		e.conn.Post()
		require.Equal(e, []rdmap.Opcode{rdmap.OpTerminate}, e.llp.sent)
		e.peerEnds()
		e.becomes(rxOver, "the reader has found the end")
		require.Equal(e, Open, e.conn.Stage(), "Fail decides")
		resume()
		e.endedWith(Terminated, errBroken, "Close")
	})
}

// TestPeerEndsWhileFailsRun: when all calls of Fail have returned, the sender decides what the peer's end means.
func TestPeerEndsWhileFailsRun(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.set("Failed")
		go e.conn.Fail(errBroken)
		synctest.Wait()
		require.False(e, e.conn.Fail(errTest), "the stream is ending already")
		e.peerEnds()
		e.becomes(rxOver, "the reader has found the end")
		require.False(e, e.conn.Fail(errTest), "and Fail still runs")
		resume()
		e.endedWith(Terminated, errBroken, "Close")
		require.Equal(e, []rdmap.Opcode{rdmap.OpTerminate}, e.llp.sent)
	})
}

// TestFailIsBounded: even if the peer does not end its half, or the Terminate cannot leave.
func TestFailIsBounded(t *testing.T) {
	for _, full := range []bool{false, true} {
		inBubble(t, nil, func(e *end) {
			e.llp.change(func() { e.llp.full = full })
			e.queues(rdmap.KindWrite, 1, nil)
			e.conn.Fail(errBroken)
			time.Sleep(PeerEndTime - 1)
			synctest.Wait()
			require.Equal(e, Terminating, e.conn.Stage())
			time.Sleep(time.Nanosecond)
			e.endedWith(Terminated, errBroken, "Abort")
		})
	}
}

// TestFailTakesTheRightFromAWaiter: the reader discards the input, and the waiter sleeps.
func TestFailTakesTheRightFromAWaiter(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w, other := e.waits(forever), e.waits(forever)
		synctest.Wait()
		e.queues(rdmap.KindRead, 1, w)
		e.queues(rdmap.KindRead, 1, other)
		e.conn.Fail(errBroken)
		e.becomes(rxBusy, "a reader has the right")
		w.hasNot("its Read is not flushed")
		late := e.waits(forever)
		late.hasNot("it sleeps, too")
		e.peerEnds()
		w.ends("its Read is flushed")
		other.ends("so is this")
		late.finish()
		late.ends("it is woken")
		e.endedWith(Terminated, errBroken, "Close")
	})
}

// TestResponderThatMayNotSendYetFails: not even a Terminate may be sent.
func TestResponderThatMayNotSendYetFails(t *testing.T) {
	for _, queued := range []int{0, 1} {
		inBubble(t, func(e *end, _ *Config) { e.llp.isFenced = true }, func(e *end) {
			if queued > 0 {
				e.queues(rdmap.KindWrite, queued, nil)
			}
			require.True(e, e.conn.Fail(errBroken))
			e.endedWith(Terminated, errBroken, "Close")
			require.Empty(e, e.llp.sent)
		})
	}
}

// TestResponderFailsAsItsFirstSegmentArrives: the goroutine that could not send yet sends the Terminate.
func TestResponderFailsAsItsFirstSegmentArrives(t *testing.T) {
	inBubble(t, func(e *end, _ *Config) { e.llp.isFenced = true }, func(e *end) {
		resume := e.llp.set("fenced")
		go e.queues(rdmap.KindWrite, 1, nil)
		synctest.Wait()
		require.True(e, e.llp.reached("fenced"))
		e.llp.arrives(aWrite)
		synctest.Wait()
		require.True(e, e.conn.Fail(errBroken))
		resume()
		synctest.Wait()
		require.Empty(e, e.llp.ends, "it waits for the peer")
		require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate])
		e.peerEnds()
		e.endedWith(Terminated, errBroken, "Close")
	})
}

// TestFailAfterOurOwnEnd: our half has ended, so no Terminate can be sent.
func TestFailAfterOurOwnEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.drains()
		e.endsSending()
		require.True(e, e.conn.Fail(errBroken))
		e.endedWith(Terminated, errBroken, "Abort")
		require.Empty(e, e.llp.sent)
	})
}

// TestOwnerFailsTheStream: it does so from inside its methods, as when a CQ has overflowed.
func TestOwnerFailsTheStream(t *testing.T) {
	for _, place := range []string{"Received", "Sent"} {
		inBubble(t, nil, func(e *end) {
			resume := e.set(place)
			if place == "Sent" {
				go e.queues(rdmap.KindWrite, 1, nil)
			} else {
				e.llp.arrives(aWrite)
			}
			synctest.Wait()
			require.True(e, e.reached(place))
			require.True(e, e.conn.Fail(errBroken))
			resume()
			synctest.Wait()
			require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate])
			e.peerEnds()
			e.endedWith(Terminated, errBroken, "Close")
		})
	}
}

// TestMessageStallsAsTheStreamEnds: no timer waits for a receive.
func TestMessageStallsAsTheStreamEnds(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.set("Received")
		e.llp.arrives(aSend(1))
		synctest.Wait()
		require.True(e, e.reached("Received"))
		e.conn.Fail(errBroken)
		resume()
		e.becomes(rxBusy, "the reader discards the input")
		require.Zero(e, e.conn.ReceiveWaits())
		e.peerEnds()
		e.endedWith(Terminated, errBroken, "Close")
	})
}

// TestRequestThatCannotBeSent: it ends the stream.
func TestRequestThatCannotBeSent(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.queues(rdmap.KindInvalidate, 1, nil)
		synctest.Wait()
		require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate])
		e.peerEnds()
		e.isOver()
		reason, _ := e.conn.Cause()
		require.Equal(e, Terminated, reason)
		require.NotEqual(e, rdmap.StatusSuccess, e.statuses[0])
	})
}

func TestSegmentInError(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.arrives(notASegment)
		synctest.Wait()
		require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate])
		require.Equal(e, []string{"Failed"}, e.heard())
		e.peerEnds()
		e.isOver()
		reason, _ := e.conn.Cause()
		require.Equal(e, Terminated, reason)
	})
}

// TestFaultOfTheLLP: a Terminate reports it to the peer, except a Fault that says that the connection is lost.
func TestFaultOfTheLLP(t *testing.T) {
	for code, reason := range map[transport.Code]Reason{
		transport.MPACRC:            Terminated,
		transport.MPAConnectionLost: Lost,
	} {
		inBubble(t, nil, func(e *end) {
			e.llp.change(func() { e.llp.lost = transport.Faultf(code, "it is broken") })
			time.Sleep(PeerEndTime)
			e.isOver()
			got, cause := e.conn.Cause()
			require.Equal(e, reason, got)
			var f *transport.Fault
			require.ErrorAs(e, cause, &f)
			require.Equal(e, reason == Terminated, e.llp.counts()[rdmap.OpTerminate] == 1)
		})
	}
}

func TestPeerTerminates(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.queues(rdmap.KindRead, 1, w)
		e.llp.arrives(aTerminate, aWrite)
		e.becomes(rxBusy, "a reader discards the input")
		require.Equal(e, Terminating, e.conn.Stage())
		require.Equal(e, 1, e.llp.shut)
		require.False(e, e.conn.Fail(errTest), "no Terminate is answered by one")
		w.hasNot("its Read is not flushed")
		e.peerEnds()
		w.ends("it is")
		e.isOver()
		reason, cause := e.conn.Cause()
		require.Equal(e, TerminateReceived, reason)
		require.ErrorContains(e, cause, "the peer has found an error")
		require.Equal(e, []string{"Terminated", "Flush", "Ended"}, e.heard())
		require.Zero(e, e.llp.counts()[rdmap.OpTerminate])
	})
}

// TestPeerTerminatesAndEndsInOneRead: the read is a waiter's or the reader's.
func TestPeerTerminatesAndEndsInOneRead(t *testing.T) {
	for _, waits := range []bool{false, true} {
		inBubble(t, nil, func(e *end) {
			if waits {
				w := e.waits(forever)
				e.holds(w, "it receives")
				e.queues(rdmap.KindRead, 1, w)
				defer w.ends("its Read is flushed")
			}
			e.llp.change(func() { e.llp.last = true })
			e.llp.change(func() { e.llp.reads, e.llp.fin = [][][]byte{{aTerminate}}, true })
			e.isOver()
			reason, _ := e.conn.Cause()
			require.Equal(e, TerminateReceived, reason)
			require.Equal(e, []string{"Close"}, e.llp.ends, "nothing was waited for")
		})
	}
}

// TestPeerEndsInTheReadDuringWhichThisSideFails: the read began before the Terminate left.
func TestPeerEndsInTheReadDuringWhichThisSideFails(t *testing.T) {
	for _, waits := range []bool{false, true} {
		inBubble(t, nil, func(e *end) {
			resume := e.llp.set("Receive")
			var w *waiter
			if waits {
				w = e.waits(forever)
				defer w.ends("its Read is flushed")
			} else {
				e.llp.arrives(aWrite)
			}
			synctest.Wait()
			require.True(e, e.llp.reached("Receive"))
			e.queues(rdmap.KindRead, 1, w)
			e.conn.Fail(errBroken)
			e.peerEnds()
			e.llp.change(func() { e.llp.reads = nil })
			resume()
			e.endedWith(Terminated, errBroken, "Close")
		})
	}
}

func TestPeerTerminatesAndDoesNotEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.arrives(aTerminate)
		time.Sleep(PeerEndTime - 1)
		synctest.Wait()
		require.Equal(e, Terminating, e.conn.Stage())
		time.Sleep(time.Nanosecond)
		e.isOver()
		reason, _ := e.conn.Cause()
		require.Equal(e, TerminateReceived, reason, "the first reason stays")
	})
}

// TestTerminateThatIsInError: it ends the stream, and no Terminate answers it.
func TestTerminateThatIsInError(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.arrives(aTerminate[:len(aTerminate)-1])
		e.becomes(rxBusy, "a reader discards the input")
		require.Zero(e, e.llp.counts()[rdmap.OpTerminate])
		e.peerEnds()
		e.isOver()
		reason, _ := e.conn.Cause()
		require.Equal(e, Terminated, reason)
	})
}

// TestSendingFails: what the peer sent before may still be readable.
func TestSendingFails(t *testing.T) {
	breaks := func(e *end) {
		resume := e.llp.set("Receive")
		e.llp.change(func() { e.llp.broken = errBroken })
		e.queues(rdmap.KindWrite, 1, nil)
		e.sends(txClosed, "nothing more is sent")
		require.Equal(e, Open, e.conn.Stage(), "the reader goes on")
		resume()
	}
	t.Run("nothing", func(t *testing.T) {
		inBubble(t, nil, func(e *end) {
			breaks(e)
			time.Sleep(readOnTime - 1)
			e.becomes(rxArmed, "there is nothing yet")
			time.Sleep(time.Nanosecond)
			e.endedWith(Lost, errBroken, "Abort")
			require.Equal(e, []rdmap.Status{rdmap.StatusFlushed}, e.statuses)
		})
	})
	t.Run("messages", func(t *testing.T) {
		inBubble(t, nil, func(e *end) {
			e.postReceives(1)
			breaks(e)
			e.llp.arrives(aSend(1), aRead)
			synctest.Wait()
			require.Equal(e, 1, e.delivered)
			e.llp.change(func() { e.llp.lost = io.ErrUnexpectedEOF })
			e.endedWith(Lost, io.ErrUnexpectedEOF, "Abort")
		})
	})
	t.Run("a Terminate", func(t *testing.T) {
		inBubble(t, nil, func(e *end) {
			breaks(e)
			e.llp.arrives(aTerminate)
			synctest.Wait()
			e.peerEnds()
			e.isOver()
			reason, _ := e.conn.Cause()
			require.Equal(e, TerminateReceived, reason)
		})
	})
	t.Run("the end", func(t *testing.T) {
		inBubble(t, nil, func(e *end) {
			breaks(e)
			e.peerEnds()
			e.endedWith(Lost, errBroken, "Abort")
		})
	})
}

// TestSendingFailsWhileTheConnectionEnds: nothing is left to read.
func TestSendingFailsWhileTheConnectionEnds(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 1, nil)
		e.peerEnds()
		e.becomes(rxOver, "the peer has ended its half")
		e.llp.change(func() { e.llp.broken = errBroken })
		e.endedWith(Lost, errBroken, "Abort")
	})
	inBubble(t, nil, func(e *end) {
		e.llp.change(func() { e.llp.broken = errBroken })
		e.conn.Fail(errTest)
		e.endedWith(Terminated, errTest, "Abort")
	})
}

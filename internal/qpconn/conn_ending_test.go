package qpconn

import (
	"io"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
)

// drains begins a graceful end.
func (e *end) drains() {
	e.conn.stream.Refuse()
	e.conn.Drain()
}

func (e *end) isDrained() bool {
	synctest.Wait()
	select {
	case <-e.conn.Drained():
		return true
	default:
		return false
	}
}

// endsSending ends this side's half, with all work done.
func (e *end) endsSending() {
	e.Helper()
	require.True(e, e.isDrained(), "all work is done")
	e.endsReceives()
	e.conn.stream.Shut()
	e.conn.EndSending()
}

// endsReceives ends the queue of receives.
func (e *end) endsReceives() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
}

func (e *end) peerEnds() { e.llp.change(func() { e.llp.fin = true }) }

// endedWith requires that the connection has ended for this reason, with this cause, in this way.
func (e *end) endedWith(want Reason, cause error, how string) {
	e.Helper()
	e.isOver()
	reason, err := e.conn.Cause()
	require.Equal(e, want, reason)
	if cause == nil {
		require.NoError(e, err)
	} else {
		require.ErrorIs(e, err, cause)
	}
	require.Equal(e, []string{how}, e.llp.ends)
}

func TestGracefulEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		require.Equal(e, Open, e.conn.Stage())
		e.drains()
		require.Equal(e, Draining, e.conn.Stage())
		e.endsSending()
		e.conn.EndSending()
		require.Equal(e, 1, e.llp.shut, "once")
		e.becomes(rxArmed, "it waits for the peer, without a goroutine")
		require.Equal(e, Closing, e.conn.Stage())
		time.Sleep(time.Hour)
		require.Equal(e, Closing, e.conn.Stage(), "for as long as the caller of EndSending allows")
		e.peerEnds()
		e.endedWith(Closed, nil, "Close")
	})
}

// TestDrainWaitsForAllWork: for Writes to leave, for the response to a Read, and for the answer to a Read of the peer.
func TestDrainWaitsForAllWork(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.llp.change(func() { e.llp.full = true })
		e.queues(rdmap.KindWrite, 1, nil)
		e.drains()
		require.False(e, e.isDrained(), "the Write is not out")
		e.llp.change(func() { e.llp.full = false })
		require.True(e, e.isDrained(), "it is")
	})
	inBubble(t, nil, func(e *end) {
		e.queues(rdmap.KindRead, 1, nil)
		e.drains()
		require.False(e, e.isDrained(), "the response has not come")
		e.llp.arrives(aResponse)
		require.True(e, e.isDrained(), "it has")
		require.Equal(e, []rdmap.Status{rdmap.StatusSuccess}, e.statuses)
	})
	inBubble(t, nil, func(e *end) {
		e.llp.change(func() { e.llp.full = true })
		e.llp.arrives(aRead)
		synctest.Wait()
		e.drains()
		require.False(e, e.isDrained(), "the answer is not out")
		e.llp.change(func() { e.llp.full = false })
		require.True(e, e.isDrained(), "it is")
	})
}

// TestDrainAsAMessageStalls: what arrived before the message was all that Drain waited for.
func TestDrainAsAMessageStalls(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.queues(rdmap.KindRead, 1, nil)
		e.drains()
		require.False(e, e.isDrained())
		e.llp.arrives(aResponse, aSend(1))
		require.True(e, e.isDrained())
		e.becomes(rxStalled, "the message waits")
	})
}

// TestDrainWaitsForALateAnswer: an extension serves a request of the peer, and answers later.
func TestDrainWaitsForALateAnswer(t *testing.T) {
	const request, response = rdmap.Opcode(0xc), rdmap.Opcode(0xd)
	var served *rdmap.Inbound
	answersLate := func(e *end, c *Config) {
		c.Stream = e.stream(&rdmap.Extension{
			Request: request, Response: response, MaxRequest: 1, MaxResponse: 1, Serve: func(in *rdmap.Inbound) { served = in },
		})
	}
	inBubble(t, answersLate, func(e *end) {
		e.llp.arrives([]byte{0x41, byte(0x40 | request), 9: byte(rdmap.QNRequest), 13: 1, 17: 0})
		synctest.Wait()
		require.NotNil(e, served, "the request has come")
		e.drains()
		require.False(e, e.isDrained(), "it was not answered")
		served.Reply(nil)
		require.True(e, e.isDrained(), "it was")
		require.Equal(e, 1, e.llp.counts()[response])
	})
}

// TestDrainSendsWhatWasOffered: the rest was offered to a waiter, which does not come.
func TestDrainSendsWhatWasOffered(t *testing.T) {
	inBubble(t, oneABatch, func(e *end) {
		e.expectsAWaiter()
		e.queues(rdmap.KindWrite, moreThanAShare, nil)
		e.sends(txOffered, "a waiter is expected")
		e.drains()
		e.hasSent(2*moreThanAShare, "without it")
		e.endsSending()
	})
}

func TestPeerEndsFirst(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.peerEnds()
		e.endedWith(Closed, nil, "Close")
		require.Equal(e, 1, e.llp.shut)
	})
	inBubble(t, nil, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.peerEnds()
		w.hasNot("it has no message")
		w.finish() // as the flush of its receive does
		w.ends("it is woken")
		e.endedWith(Closed, nil, "Close")
	})
	inBubble(t, nil, func(e *end) {
		e.drains()
		e.peerEnds()
		e.endedWith(Closed, nil, "Close")
	})
}

func TestPeerEndsWithWorkOutstanding(t *testing.T) {
	for _, draining := range []bool{false, true} {
		inBubble(t, nil, func(e *end) {
			e.queues(rdmap.KindRead, 1, nil)
			if draining {
				e.drains()
			}
			e.peerEnds()
			e.isOver()
			reason, cause := e.conn.Cause()
			require.Equal(e, Terminated, reason)
			require.ErrorContains(e, cause, "reported: ")
			require.ErrorContains(e, cause, "1 work requests and 0 RDMA Reads outstanding")
			require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate], "a Terminate tells the peer")
			require.Equal(e, []rdmap.Status{rdmap.StatusFlushed}, e.statuses)
		})
	}
}

// TestPeerEndsInTheMiddleOfAMessage: a Terminate tells the peer so, unless our half has ended, too. On this side it is
// an error in both cases.
func TestPeerEndsInTheMiddleOfAMessage(t *testing.T) {
	beginning := aSend(1)
	beginning[0] &^= 0x40 // not the last segment
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		e.llp.arrives(beginning)
		e.peerEnds()
		e.isOver()
		reason, cause := e.conn.Cause()
		require.Equal(e, Terminated, reason)
		require.ErrorContains(e, cause, "in the middle of a message")
		require.Equal(e, 1, e.llp.counts()[rdmap.OpTerminate])
	})
	inBubble(t, nil, func(e *end) {
		e.postReceives(1)
		e.llp.arrives(beginning)
		e.drains()
		e.endsSending()
		e.peerEnds()
		e.isOver()
		reason, cause := e.conn.Cause()
		require.Equal(e, Terminated, reason)
		require.ErrorContains(e, cause, "in the middle of a message")
		require.Zero(e, e.llp.counts()[rdmap.OpTerminate])
	})
}

// TestPeerEndsWhileTheSenderCompletes: a message that the sender has handed to the network, but not yet completed, is
// not outstanding work.
func TestPeerEndsWhileTheSenderCompletes(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.set("Sent")
		go e.queues(rdmap.KindWrite, 1, nil)
		synctest.Wait()
		require.True(e, e.reached("Sent"))
		e.peerEnds()
		e.becomes(rxOver, "the reader has found the end")
		require.Equal(e, Open, e.conn.Stage(), "the sender decides")
		resume()
		e.endedWith(Closed, nil, "Close")
		require.Equal(e, []rdmap.Status{rdmap.StatusSuccess}, e.statuses)
	})
}

func TestPeerEndsWhileTheNetworkIsFull(t *testing.T) {
	for _, again := range []bool{true, false} {
		inBubble(t, nil, func(e *end) {
			e.llp.change(func() { e.llp.full = true })
			e.queues(rdmap.KindWrite, 1, nil)
			e.peerEnds()
			time.Sleep(PeerEndTime - 1)
			require.Equal(e, Open, e.conn.Stage(), "the Write may still leave")
			if again {
				e.llp.change(func() { e.llp.full = false })
				e.endedWith(Closed, nil, "Close")
				return
			}
			time.Sleep(time.Nanosecond)
			e.isOver()
			reason, _ := e.conn.Cause()
			require.Equal(e, Lost, reason)
			require.Equal(e, []rdmap.Status{rdmap.StatusFlushed}, e.statuses)
		})
	}
}

// TestPeerEndsWhileAnotherIsToSend: the peer ends its half while a goroutine sends, and that goroutine leaves the
// responses to another. The goroutine that finds nothing more to send decides what the end means.
func TestPeerEndsWhileAnotherIsToSend(t *testing.T) {
	for _, full := range []bool{false, true} {
		inBubble(t, oneABatch, func(e *end) {
			resume := e.llp.set("Flush")
			go e.queues(rdmap.KindWrite, 1, nil)
			synctest.Wait()
			require.True(e, e.llp.reached("Flush"), "the poster sends")
			for msn := range byte(moreThanAShare) {
				read := slices.Clone(aRead)
				read[13] = 1 + msn
				e.llp.arrives(read)
			}
			e.peerEnds()
			e.becomes(rxOver, "the reader has found the end")
			e.llp.change(func() { e.llp.full = full })
			resume()
			synctest.Wait()
			require.Empty(e, e.llp.counts()[rdmap.OpTerminate], "no response is lost")
			e.llp.change(func() { e.llp.full = false })
			e.endedWith(Closed, nil, "Close")
			require.Equal(e, map[rdmap.Opcode]int{rdmap.OpWrite: 1, rdmap.OpReadResponse: moreThanAShare}, e.llp.counts())
		})
	}
}

// TestVERBS_39_PeerEndsBeforeAllIsSent: work handed to the network before the end succeeds. The rest is flushed, because
// the peer would discard it.
func TestVERBS_39_PeerEndsBeforeAllIsSent(t *testing.T) {
	for _, full := range []bool{false, true} {
		inBubble(t, oneABatch, func(e *end) {
			resume := e.llp.set("Flush")
			go e.queues(rdmap.KindWrite, 3, nil)
			synctest.Wait()
			require.True(e, e.llp.reached("Flush"), "the poster sends the first of them")
			e.peerEnds()
			e.becomes(rxOver, "the reader has found the end")
			_, err := e.conn.stream.Post(1, func(int, *rdmap.Request) error { return nil })
			require.ErrorIs(e, err, rdmap.ErrEnded, "no more is posted")
			e.llp.change(func() { e.llp.full = full })
			resume()
			synctest.Wait()
			e.llp.change(func() { e.llp.full = false })
			e.isOver()
			reason, cause := e.conn.Cause()
			require.Equal(e, Terminated, reason)
			require.ErrorContains(e, cause, "the peer ended its half with")
			require.Equal(e, map[rdmap.Opcode]int{rdmap.OpWrite: 1, rdmap.OpTerminate: 1}, e.llp.counts())
			require.Equal(e, []rdmap.Status{rdmap.StatusSuccess, rdmap.StatusFlushed, rdmap.StatusFlushed}, e.statuses)
		})
	}
}

// TestOurEndDoesNotLeave: after the peer's end, our own cannot be sent, as over TLS when the network is full. Our half
// has then not ended gracefully, and the last messages may be lost.
func TestOurEndDoesNotLeave(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.llp.set("CloseSend")
		e.peerEnds()
		synctest.Wait()
		require.True(e, e.llp.reached("CloseSend"))
		time.Sleep(PeerEndTime)
		synctest.Wait()
		resume()
		e.endedWith(Lost, os.ErrDeadlineExceeded, "Abort")
	})
	inBubble(t, nil, func(e *end) {
		resume := e.llp.set("CloseSend")
		e.peerEnds()
		synctest.Wait()
		e.conn.Abort(errAbort)
		resume()
		e.endedWith(Aborted, errAbort, "Abort")
	})
}

// TestPosterDoesNotWaitForOurEnd: after the end of the peer's half, the poster finds nothing more to send.
func TestPosterDoesNotWaitForOurEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		sent, ended := e.set("Sent"), e.llp.set("CloseSend")
		var posted atomic.Bool
		go func() {
			e.queues(rdmap.KindWrite, 1, nil)
			posted.Store(true)
		}()
		synctest.Wait()
		e.peerEnds()
		e.becomes(rxOver, "the reader has found the end")
		sent()
		synctest.Wait()
		require.True(e, e.llp.reached("CloseSend"))
		require.True(e, posted.Load(), "a Post does not wait for the network")
		ends := e.tasks.Count()
		e.conn.Post()
		synctest.Wait()
		require.Equal(e, ends, e.tasks.Count(), "one goroutine ends our half")
		require.Equal(e, Open, e.conn.Stage(), "our half has not ended")
		ended()
		e.endedWith(Closed, nil, "Close")
	})
}

// TestLLPThatEndsItsGoroutine: a net.Conn that a program's test supplies may fail that test in Close.
func TestLLPThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		resume := e.llp.set("Close")
		e.peerEnds()
		synctest.Wait()
		require.True(e, e.llp.reached("Close"))
		e.llp.change(func() { e.llp.goexits = true })
		resume()
		e.endedWith(Closed, nil, "Close")
	})
}

// TestLLPThatEndsAsAWhole: there is no half to end.
func TestLLPThatEndsAsAWhole(t *testing.T) {
	asAWhole := func(e *end, _ *Config) { e.llp.noShut = true }
	inBubble(t, asAWhole, func(e *end) {
		e.drains()
		e.endsSending()
		e.endedWith(Closed, nil, "Close")
	})
	inBubble(t, asAWhole, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.drains()
		require.True(e, e.isDrained())
		e.conn.stream.Shut()
		resume := e.llp.set("Close")
		go e.conn.EndSending()
		synctest.Wait() // it has found the LLP closed
		resume()
		e.endedWith(Closed, nil, "Close")
		w.finish()
		w.ends("it is woken")
	})
	inBubble(t, asAWhole, func(e *end) {
		e.llp.arrives(aTerminate)
		e.isOver()
		reason, _ := e.conn.Cause()
		require.Equal(e, TerminateReceived, reason)
		require.Equal(e, []string{"Close"}, e.llp.ends)
	})
	inBubble(t, asAWhole, func(e *end) {
		e.conn.Fail(errTest)
		time.Sleep(PeerEndTime - 1)
		require.Equal(e, Terminating, e.conn.Stage(), "our Terminate is under way")
		e.peerEnds()
		e.endedWith(Terminated, errTest, "Close")
	})
}

// TestMessageAfterOurOwnEnd: the applications disagree about the end of the stream. What still arrives is discarded,
// once.
func TestMessageAfterOurOwnEnd(t *testing.T) {
	for _, waits := range []bool{false, true} {
		inBubble(t, nil, func(e *end) {
			e.postReceives(1)
			e.drains()
			e.endsSending()
			if waits {
				w := e.waits(forever)
				e.holds(w, "it receives")
				defer w.finish()
			}
			e.llp.arrives(aSend(1))
			e.becomes(rxBusy, "a reader discards the input")
			require.Equal(e, 1, see(e.llp, func() int { return e.llp.discards }))
			require.Equal(e, Failed, e.conn.Stage())
			require.LessOrEqual(e, e.llp.calls, 4)
			e.llp.arrives(aSend(2))
			e.peerEnds()
			e.endedWith(BadClose, rdmap.ErrLate, "Close")
			require.Zero(e, e.delivered)
		})
	}
}

func TestMessageAfterOurOwnEndAndPeerDoesNotEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.drains()
		e.endsSending()
		e.llp.arrives(aSend(1))
		time.Sleep(PeerEndTime - 1)
		synctest.Wait()
		require.Equal(e, Failed, e.conn.Stage())
		time.Sleep(time.Nanosecond)
		e.endedWith(BadClose, rdmap.ErrLate, "Abort")
	})
}

// TestAfterOurOwnEnd: a Write of no octets has no effect, and a Terminate is processed.
func TestAfterOurOwnEnd(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		e.drains()
		e.endsSending()
		e.llp.arrives(aWrite)
		e.becomes(rxArmed, "it means nothing")
		e.peerEnds()
		e.endedWith(Closed, nil, "Close")
	})
	inBubble(t, nil, func(e *end) {
		e.drains()
		e.endsSending()
		e.llp.arrives(aTerminate)
		synctest.Wait()
		e.peerEnds()
		e.isOver()
		reason, _ := e.conn.Cause()
		require.Equal(e, TerminateReceived, reason)
	})
}

func TestConnectionIsLost(t *testing.T) {
	lost := io.ErrUnexpectedEOF
	inBubble(t, nil, func(e *end) {
		e.llp.change(func() { e.llp.lost = lost })
		e.endedWith(Lost, lost, "Abort")
	})
	inBubble(t, nil, func(e *end) {
		w := e.waits(forever)
		e.holds(w, "it receives")
		e.queues(rdmap.KindRead, 1, w)
		e.llp.change(func() { e.llp.lost = lost })
		w.ends("its Read was flushed")
		e.endedWith(Lost, lost, "Abort")
		require.Zero(e, e.llp.counts()[rdmap.OpTerminate])
	})
}

// TestTimersEndWithTheConnection: their functions refer to the queue pair and to what the program has given to it.
func TestTimersEndWithTheConnection(t *testing.T) {
	inBubble(t, nil, func(e *end) {
		called := make(chan string, 3)
		e.conn.After(time.Second, func() { called <- "before the end" })
		e.conn.After(time.Minute, func() { called <- "behind it" })
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(e, called, 1)
		e.conn.Abort(io.ErrUnexpectedEOF)
		e.endedWith(Aborted, io.ErrUnexpectedEOF, "Abort")
		e.conn.After(time.Second, func() { called <- "begun behind it" })
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(e, called, 1)
	})
}

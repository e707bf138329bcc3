package qpconn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A script passes a sequence of events to its arbiter, and checks the actions that the arbiter returns.
type script struct {
	*testing.T
	arbiter[string]
}

func (s *script) answers(what string, got, want do) {
	s.Helper()
	require.Equal(s.T, want, got, what)
}

const reader = "" // as the holder of the right

// TestSteadyWaiterCostsNothing: it causes no system call, no goroutine, and no wake-up.
func TestSteadyWaiterCostsNothing(t *testing.T) {
	s := &script{T: t}
	s.answers("the first wait takes the right from the poller", s.come("w"), doRead|doDisarm)
	s.answers("there is no input yet", s.empty(false), doPark)
	s.answers("it has come", s.found(), doRead)
	s.answers("the waiter will be back", s.leave("w", true), doSweepLater)
	for range 3 {
		s.answers("it posts", s.post(), doSend)
		s.answers("all is sent", s.sent(), 0)
		s.answers("it is back", s.come("w"), doRead)
		s.answers("there is no input yet", s.empty(false), doPark)
		s.answers("it has come", s.found(), doRead)
		s.answers("it will be back", s.leave("w", true), doSweepLater)
	}
	s.answers("it is not back", s.sweep(), doArm)
	require.Equal(t, rxArmed, s.rx)
}

// TestRightPassesFromWaiterToWaiter: the right to receive passes on without a system call in between.
func TestRightPassesFromWaiterToWaiter(t *testing.T) {
	s := &script{T: t}
	s.answers("the first waiter receives", s.come("a"), doRead|doDisarm)
	s.answers("the second sleeps", s.come("b"), 0)
	s.answers("so does the third", s.come("c"), 0)
	s.answers("the third gives up", s.leave("c", true), 0)
	s.answers("the first has what it waits for", s.leave("a", true), doGrant)
	require.True(t, s.holds("b"))
	s.answers("the second was the last", s.leave("b", false), doArm)
}

// TestReaderGivesTheRightToAWaiter: at once if the reader is parked, otherwise when it has read all input.
func TestReaderGivesTheRightToAWaiter(t *testing.T) {
	s := &script{T: t}
	s.answers("there is input", s.ready(), doStartReader|doDisarm)
	s.answers("a waiter comes meanwhile", s.come("w"), 0)
	s.answers("the reader has read all", s.empty(true), doGrant)
	s.answers("the waiter has what it waits for", s.leave("w", false), doArm)

	s.answers("there is input", s.ready(), doStartReader|doDisarm)
	s.answers("more may come", s.empty(true), doPark|doSweepLater)
	s.answers("a waiter comes", s.come("w"), doWake)
	s.answers("the reader looks", s.found(), doRead)
	s.answers("and finds nothing", s.empty(true), doGrant)
	require.True(t, s.holds("w"))
}

// TestReaderLingersUntilItIsSweptAway: if no more input comes, the sweeper wakes the reader.
func TestReaderLingersUntilItIsSweptAway(t *testing.T) {
	s := &script{T: t}
	s.ready()
	s.answers("more may come", s.empty(true), doPark|doSweepLater)
	s.answers("nothing does", s.sweep(), doWake)
	s.answers("it is swept once", s.sweep(), 0)
	s.answers("the reader looks", s.found(), doRead)
	s.answers("and ends", s.empty(true), doArm)
	s.answers("a sweep without a holder", s.sweep(), 0)

	s.ready()
	s.answers("the last input was long ago: it does not linger", s.empty(false), doArm)
}

// TestStalledMessage: a message waits for a receive, and no goroutine waits with it.
func TestStalledMessage(t *testing.T) {
	s := &script{T: t}
	s.answers("a receive on a connection that has not stalled", s.resume(), 0)
	s.come("w")
	s.answers("another waiter", s.come("v"), 0)
	s.answers("no receive is posted", s.stall(), 0)
	require.Equal(t, rxStalled, s.rx)
	s.answers("a third", s.come("u"), 0)
	s.answers("a receive is posted: the reader tries the message again", s.resume(), doStartReader)
	s.answers("more may come: the first waiter goes on", s.empty(true), doGrant)
	require.True(t, s.holds("w"))
	for _, w := range []string{"w", "u", "v"} {
		s.leave(w, false)
	}
	require.Equal(t, rxArmed, s.rx)

	s.ready()
	s.answers("the reader stalls", s.stall(), 0)
	s.answers("a receive is posted", s.resume(), doStartReader)
}

// TestRestOfAShare: the goroutine that receives sends the rest, or else a writer does.
func TestRestOfAShare(t *testing.T) {
	s := &script{T: t}
	s.answers("work is posted", s.post(), doSend)
	s.answers("a share is sent, and no goroutine receives", s.share(false), doStartWriter)
	s.answers("the writer goes on", s.share(false), doSend)
	s.answers("more is posted", s.post(), 0)
	s.answers("the writer looks again", s.sent(), doSend)
	s.answers("all is sent", s.sent(), 0)

	s.come("w")
	s.empty(false)
	s.post()
	s.answers("a share is sent: the waiter sends the rest", s.share(false), doWake)
	s.answers("it looks", s.found(), doRead)
	s.answers("and sends before it parks again", s.empty(false), doSend|doRead)
	s.answers("another share", s.share(false), 0)
	s.answers("the waiter leaves, and may be back", s.leave("w", false), doArm|doSweepLater)
	s.answers("it is not: a writer is needed", s.sweep(), doStartWriter)

	s.sent()
	s.come("w")
	s.leave("w", true)
	s.post()
	s.answers("a share is sent: the waiter is expected back", s.share(false), 0)
	s.answers("its next post takes the offer", s.post(), doSend)
	s.answers("a share is sent", s.share(false), 0)
	s.answers("its next wait takes the offer", s.come("w"), doSend|doRead)
	s.answers("a share is sent", s.share(false), 0)
	s.leave("w", true)
	s.answers("it does not come", s.sweep(), doArm|doStartWriter)

	s.sent()
	s.post()
	s.answers("a share is sent: a waiter is expected", s.share(true), doSweepLater)
	s.answers("it posts", s.post(), doSend)
	s.answers("a share is sent", s.share(true), doSweepLater)
	s.answers("it does not come", s.sweep(), doStartWriter)

	s = &script{T: t}
	s.answers("the connection cannot be armed", s.armFailed(), doDisarm|doStartReader)
	s.answers("a message needs a receive", s.stall(), 0)
	s.post()
	s.answers("a share is sent: a waiter is expected, but no sweep is possible", s.share(true), doStartWriter)
}

// TestFullNetwork: only the writer waits for the network.
func TestFullNetwork(t *testing.T) {
	s := &script{T: t}
	s.post()
	s.answers("the network accepts no more", s.full(), doStartWriter)
	s.answers("what is posted is left to the writer", s.post(), 0)
	s.answers("the connection ends", s.close(), doDisarm)
	require.Equal(t, rxEnded, s.rx)
	s.answers("the writer learns it", s.broken(), doFinish)
}

// TestTerminate: the reader discards the input.
func TestTerminate(t *testing.T) {
	s := &script{T: t}
	s.come("w")
	s.empty(false)
	s.come("v")
	s.answers("a Terminate was sent", s.discard(), doWake)
	s.answers("a second time", s.discard(), 0)
	s.answers("the waiter looks", s.found(), doRead)
	s.answers("and gives the right up", s.empty(false), doStartReader)
	s.answers("a waiter comes", s.come("u"), 0)
	s.answers("the reader waits for the peer's end", s.empty(false), doPark)
	s.answers("it is swept", s.sweep(), doWake)
	s.answers("it looks", s.found(), doRead)
	s.answers("and goes on waiting", s.empty(false), doPark)
	s.answers("the peer's Terminate is too late", s.discard(), 0)
	s.answers("the peer has ended, and the connection is closed", s.close(), doWake)
	s.answers("which is done once", s.close(), 0)
	s.answers("the reader has discarded all input", s.discarded(), doFinish)
}

// TestEndIsFoundInAReadThatBeganBeforeATerminate: a waiter or the reader may be in that read.
func TestEndIsFoundInAReadThatBeganBeforeATerminate(t *testing.T) {
	for _, w := range []string{"w", reader} {
		s := &script{T: t}
		if w == reader {
			s.ready()
		} else {
			s.come(w)
		}
		require.True(t, s.holds(w))
		s.answers("a Terminate was sent", s.discard(), 0)
		s.answers("the read has found the end", s.over(), doStartReader)
		s.answers("the reader has thrown away all", s.discarded(), 0)
		s.answers("the connection is closed", s.close(), doFinish)
		s.answers("which is done once", s.close(), 0)
	}
}

// TestConnectionThatCannotBeArmed: it keeps its reader.
func TestConnectionThatCannotBeArmed(t *testing.T) {
	s := &script{T: t}
	s.come("w")
	s.answers("the waiter leaves", s.leave("w", false), doArm)
	s.answers("which fails", s.armFailed(), doStartReader|doDisarm)
	s.answers("a waiter only sleeps", s.come("w"), 0)
	s.answers("the reader parks", s.empty(false), doPark)
	s.answers("another waiter does not disturb it", s.come("v"), 0)
	s.answers("it is swept", s.sweep(), doWake)
	s.answers("it looks", s.found(), doRead)
	s.answers("and parks again", s.empty(false), doPark)
	require.True(t, s.holds(reader))
}

// TestCloseWakes: Close wakes a parked goroutine, which finds the connection closed.
func TestCloseWakes(t *testing.T) {
	s := &script{T: t}
	s.come("w")
	s.empty(false)
	s.answers("the connection is closed", s.close(), doWake)
	s.answers("the waiter looks", s.found(), doRead)
	s.answers("and finds the connection closed", s.over(), doFinish)
}

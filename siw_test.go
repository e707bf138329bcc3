package iwarp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const emptyWrite = "c1 40 00000000 0000000000000000"

func TestInitiatorKnocksAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(QPConfig{}, func(p *peer) {
			defer close(done)
			p.wantRequest(defaultRequest)
			p.replies("50 02 0004 8010 8010")
			p.wantSegment("the RTR", emptyWrite)
			p.wantIdle("the peer has some time", siwWait-time.Millisecond)
			p.wantSegment("then comes another empty Write", emptyWrite)
			p.wantIdle("but no third", time.Minute)
		}))
		<-done
		require.Zero(t, s.qp.SendCQ().Poll(make([]WC, 1)), "neither makes a completion")
	})
}

func TestInitiatorDoesNotKnockIfItWasHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(QPConfig{}, func(p *peer) {
			defer close(done)
			p.wantRequest(defaultRequest)
			p.replies("50 02 0004 8010 8010")
			p.wantSegment("the RTR", emptyWrite)
			p.sends("an empty Write", emptyWrite)
			p.wantIdle("nothing follows an answer", time.Minute)
		}))
		<-done
	})
}

// TestVERBS_56_KnockTakesNoSlotOfTheUser: it waits in a full queue, whose slots are as many as ever
// when the first is free.
func TestVERBS_56_KnockTakesNoSlotOfTheUser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		read := SendWR{Op: OpRDMARead, Flags: ReadFence}
		posts := func(_ context.Context, qp *QP) error { return qp.PostSend(read, read, read) }
		answer := make(chan bool)
		require.NoError(t, s.dialTo(QPConfig{SendDepth: 3, Setup: posts}, func(p *peer) {
			p.wantRequest(defaultRequest)
			p.replies("50 02 0004 8010 8010")
			p.wantSegment("the RTR", emptyWrite)
			p.segment()
			for range 2 {
				<-answer
				p.writes(fpdu(response(0xc1, 0, 0, "")))
				p.segment()
			}
			p.wantSegment("the knock goes out in its turn", emptyWrite)
			<-answer
		}))
		time.Sleep(2 * siwWait)
		require.ErrorIs(t, s.qp.PostSend(read), ErrQueueFull)
		answer <- true
		s.completes(s.qp.SendCQ(), 1)
		require.NoError(t, s.qp.PostSend(read), "the slot that is free is the user's, though the knock still waits")
		answer <- true
		answer <- true
	})
}

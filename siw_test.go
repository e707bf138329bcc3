package iwarp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

const emptyWrite = "c1 40 00000000 0000000000000000"

func TestInitiatorSendsAnotherEmptyWriteToASilentPeer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(iwarp.QPConfig{}, func(p *wiretest.Peer) {
			defer close(done)
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("50 02 0004 8010 8010")
			p.WantSegment("the RTR", emptyWrite)
			for _, wait := range iwarp.SIWWaits {
				p.WantIdle("the peer has some time", wait-time.Millisecond)
				p.WantSegment("then comes another empty Write", emptyWrite)
			}
			p.WantIdle("but no more of them", time.Minute)
		}))
		<-done
		require.Zero(t, s.qp.SendCQ().Poll(make([]iwarp.WC, 1)), "neither makes a completion")
	})
}

// TestInitiatorSendsEmptyWritesWithoutAnRTR: siw may have lost the wake-up for the first message of the application, too.
func TestInitiatorSendsEmptyWritesWithoutAnRTR(t *testing.T) {
	for _, first := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			s := newSide(t, nil)
			done := make(chan struct{})
			cfg := iwarp.QPConfig{MPA: iwarp.MPAOptions{ClientServer: true}}
			require.NoError(t, s.dialTo(cfg, func(p *wiretest.Peer) {
				defer close(done)
				p.WantRequest("50 02 0004 0010 0010")
				p.Reply("50 02 0004 0010 0010")
				if first {
					p.WantSegment("the message of the application", "41 43 00000000 00000000 00000001 00000000")
					for _, wait := range iwarp.SIWWaits {
						p.WantIdle("the peer has some time", wait-time.Millisecond)
						p.WantSegment("then comes an empty Write", emptyWrite)
					}
				}
				p.WantIdle("nothing waits unread where nothing was sent", time.Minute)
			}))
			if first {
				require.NoError(t, s.qp.Send(testContext(t)))
			}
			<-done
		})
	}
}

// TestInitiatorSendsEmptyWritesBehindARead: none of them completes, because the peer has not read the Read either. Each
// of them has a slot, although the queue is full.
func TestInitiatorSendsEmptyWritesBehindARead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		reads := func(_ context.Context, qp *iwarp.QP) error { return qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead}) }
		require.NoError(t, s.dialTo(iwarp.QPConfig{SendDepth: 1, Setup: reads}, func(p *wiretest.Peer) {
			defer close(done)
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("50 02 0004 8010 8010")
			p.WantSegment("the RTR", emptyWrite)
			p.Segment()
			for _, wait := range iwarp.SIWWaits {
				p.WantIdle("the peer has some time", wait-time.Millisecond)
				p.WantSegment("then comes an empty Write", emptyWrite)
			}
			p.WantIdle("but no more of them", time.Minute)
		}))
		<-done
	})
}

func TestInitiatorSendsNoOtherEmptyWriteToAPeerThatAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(iwarp.QPConfig{}, func(p *wiretest.Peer) {
			defer close(done)
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("50 02 0004 8010 8010")
			p.WantSegment("the RTR", emptyWrite)
			p.SendHex("an empty Write", emptyWrite)
			p.WantIdle("nothing follows an answer", time.Minute)
		}))
		<-done
	})
}

// TestVERBS_56_EmptyWriteForSiwTakesNoSlotOfTheUser: the empty Write waits in a full queue, and the user can use the
// next free slot.
func TestVERBS_56_EmptyWriteForSiwTakesNoSlotOfTheUser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		read := iwarp.SendWR{Op: iwarp.OpRDMARead, Flags: iwarp.ReadFence}
		posts := func(_ context.Context, qp *iwarp.QP) error { return qp.PostSend(read, read, read) }
		answer := make(chan bool)
		require.NoError(t, s.dialTo(iwarp.QPConfig{SendDepth: 3, Setup: posts}, func(p *wiretest.Peer) {
			p.WantRequest(wiretest.DefaultRequest)
			p.Reply("50 02 0004 8010 8010")
			p.WantSegment("the RTR", emptyWrite)
			p.Segment()
			for range 2 {
				<-answer
				p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
				p.Segment()
			}
			p.WantSegment("the empty Write is sent in its turn", emptyWrite)
			<-answer
		}))
		time.Sleep(2 * iwarp.SIWWaits[0])
		require.ErrorIs(t, s.qp.PostSend(read), iwarp.ErrQueueFull)
		answer <- true
		s.completes(s.qp.SendCQ(), 1)
		require.NoError(t, s.qp.PostSend(read), "the slot that is free is the user's, though the empty Write still waits")
		answer <- true
		answer <- true
	})
}

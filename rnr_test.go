package iwarp_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

func TestMessageWaitsForAReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		for msn := range uint32(3) {
			k.p.Send(wiretest.Send(msn+1, 0, "hi"))
			k.p.Send(wiretest.Write(k.mr.STag(), uint64(msn), "w"))
			time.Sleep(iwarp.DefaultRNRWait - time.Nanosecond)
			k.wantNoCompletion("the message waits")
			require.Zero(t, k.mem[msn], "and nothing after it is taken")
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: uint64(msn), Local: k.at(64, 8)}))
			synctest.Wait()
			k.wantCompletions("a receive in time takes it", uint64(msn))
			require.EqualValues(t, 'w', k.mem[msn], "and the stream goes on")
		}
		require.Equal(t, iwarp.StateRTS, k.qp.State(), "each message has a wait of its own")
		require.NoError(t, k.qp.Abort())
	})
}

// TestReceiveBeforeARefusedOneTakesTheMessageThatWaits, although the call of PostRecv fails.
func TestReceiveBeforeARefusedOneTakesTheMessageThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.p.Send(wiretest.Send(1, 0, "hi"))
		synctest.Wait()
		require.Error(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(64, 8)}, iwarp.RecvWR{Local: []iwarp.SGE{{Len: 1}}}))
		synctest.Wait()
		require.Equal(t, 1, k.cq.Stats().Waiting)
		k.wantCompletions("the first of the list", 1)
		require.NoError(t, k.qp.Abort())
	})
}

// TestARCH_11_WaitThatEndsAsAReceiveIsPosted: the message takes the receive, even in a run, and the next message may
// wait as long as any.
func TestARCH_11_WaitThatEndsAsAReceiveIsPosted(t *testing.T) {
	for _, first := range [][]byte{wiretest.Send(1, 0, "hi"), wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "Imm Data")} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{}, nil)
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(0, 8)}))
			k.qp.GiveUp() // as the end of the wait does
			k.p.Send(first)
			k.wantCompletions("it takes the receive", 1)
			k.p.Send(wiretest.Send(2, 0, "hi"))
			time.Sleep(iwarp.DefaultRNRWait - time.Nanosecond)
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 2, Local: k.at(0, 8)}))
			k.wantCompletions("the next has waited", 2)
			require.NoError(t, k.qp.Abort())
		})
	}
}

func TestARCH_11_MessageWaitsNoLongerThanRNRWait(t *testing.T) {
	for _, wait := range []time.Duration{-1, time.Nanosecond, 300 * time.Millisecond, 0} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{RNRWait: wait}, nil)
			k.speaks()
			k.posts(iwarp.SendWR{ID: 7, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
			k.p.Segment()
			start := time.Now()
			bad := wiretest.Send(1, 0, "hi")
			k.p.Send(bad)
			want := wait
			if wait == 0 {
				want = iwarp.DefaultRNRWait
				time.Sleep(want - wiretest.Patience/2)
			}
			require.Equal(t, wiretest.Terminate(0x1202, wiretest.DDPHeader, bad), k.p.Segment(), "no buffer")
			require.Equal(t, max(want, 0), time.Since(start), "it ends when RNRWait is over")
			k.p.WantEOF("nothing follows")
			k.p.Close()
			<-k.qp.Done()
			require.ErrorIs(t, k.qp.Err(), iwarp.ErrNoReceive)
			require.ErrorIs(t, k.qp.PostRecv(iwarp.RecvWR{}), iwarp.ErrNoReceive, "a receive that comes too late is told why")
			require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
		})
	}
}

// TestARCH_11_EventOfAMessageThatWaits: one for each wait, after its first second, and only if the wait is longer.
func TestARCH_11_EventOfAMessageThatWaits(t *testing.T) {
	for name, c := range map[string]struct{ wait, stall time.Duration }{
		"default":                     {0, 29 * time.Second},
		"no limit":                    {iwarp.RNRWaitForever, 24 * time.Hour},
		"a little more than a second": {iwarp.NoticeAfter + 1, iwarp.NoticeAfter},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{RNRWait: c.wait}, nil)
				for msn := range uint32(2) {
					k.p.Send(wiretest.Send(msn+1, 0, "hi"))
					time.Sleep(iwarp.NoticeAfter - time.Nanosecond)
					k.wantEvents("none before the first second is over")
					time.Sleep(time.Nanosecond)
					e := k.wantEvents("then one", iwarp.EventNoReceive)
					require.Same(t, k.qp, e.QP)
					require.ErrorIs(t, e.Err, iwarp.ErrNoReceive)
					require.NotErrorIs(t, e.Err, net.ErrClosed, "the QP has not ended")
					time.Sleep(c.stall - iwarp.NoticeAfter)
					k.wantEvents("and no more")
					require.Equal(t, iwarp.StateRTS, k.qp.State())
					require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: uint64(msn), Local: k.at(64, 8)}))
					k.wantCompletions("it has waited for the receive", uint64(msn))
				}
				require.NoError(t, k.qp.Abort())
			})
		})
	}
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{RNRWait: iwarp.NoticeAfter}, nil)
		k.p.Send(wiretest.Send(1, 0, "hi"))
		k.wantTerminate("no buffer", 0x1202)
		<-k.qp.Done()
		k.wantEvents("the end tells enough", iwarp.EventTerminated)
	})
}

// TestHandlerThatStallsOnce: a server that is busy for some seconds loses no client.
func TestHandlerThatStallsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{network: "pipe"})
		ctx := testContext(t)
		require.NoError(t, client.qp.Send(ctx))
		time.Sleep(10 * time.Second)
		_, err := server.qp.Recv(ctx, iwarp.SGE{})
		require.NoError(t, err)
		require.NoError(t, client.qp.Err())
	})
}

// TestPeerHasNoReceive: how the sender sees it.
func TestPeerHasNoReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
		k.p.Segment()
		bad := k.p.Segment()
		k.p.Send(wiretest.Terminate(0x1202, wiretest.DDPHeader, bad))
		k.p.WantEOF("the end")
		k.p.Close()
		wcs := k.completes(k.cq, 2)
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed, iwarp.StatusNoReceive}, statuses(wcs), "the Send that the Terminate names")
		require.ErrorIs(t, wcs[1].Err(), iwarp.ErrNoReceive)
	})
}

// TestWaitForAReceiveHoldsThePeerBack: over real sockets, too, this side stops reading.
func TestWaitForAReceiveHoldsThePeerBack(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: network, server: iwarp.QPConfig{RNRWait: time.Minute}, client: iwarp.QPConfig{SendDepth: 64}})
			const n = 1 << 20
			src, srcMR := client.register(n, 0, nil)
			fillRandom(src)
			dst, dstMR := server.register(n, stag.LocalWrite, nil)
			const messages = 32 // more than sockets hold
			for i := range messages {
				require.NoError(t, client.qp.PostSend(iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, Local: []iwarp.SGE{srcMR.Slice(0, n)}}))
			}
			time.Sleep(50 * time.Millisecond)
			require.Less(t, client.qp.SendCQ().Poll(make([]iwarp.WC, messages)), messages, "the sender cannot have sent all")
			ctx := testContext(t)
			for range messages {
				got, err := server.qp.Recv(ctx, dstMR.Slice(0, n))
				require.NoError(t, err)
				require.Equal(t, n, got)
			}
			require.Equal(t, src, dst)
		})
	}
}

func TestVERBS_71_ReceiveTooSmallForItsMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(0, 4)}, iwarp.RecvWR{ID: 2, Local: k.at(4, 4)}, iwarp.RecvWR{ID: 3, Local: k.at(8, 4)}))
		k.p.Send(wiretest.Send(1, 0, "two"))
		bad := wiretest.Send(2, 0, "five!")
		k.p.Send(bad)
		require.Equal(t, wiretest.Terminate(0x1205, wiretest.DDPHeader, bad), k.p.Segment())
		k.p.WantEOF("nothing follows")
		k.p.Close()
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []uint64{1, 2, 3}, ids(wcs), "in order")
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusLocalLength, iwarp.StatusFlushed}, statuses(wcs))
		require.EqualValues(t, 3, wcs[0].Len, "what has come, and not what there is room for")
		require.ErrorIs(t, wcs[1].Err(), iwarp.ErrBounds)
		require.Equal(t, "two\x00\x00\x00\x00\x00", string(k.mem[:8]))
	})
}

func TestReceiveWhoseRegionIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, mr := k.register(8, stag.LocalWrite, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 8)}}, iwarp.RecvWR{ID: 2}))
		require.NoError(t, mr.Invalidate(testContext(t)))
		k.p.Send(wiretest.Send(1, 0, "x"))
		k.wantTerminate("a local error", 0x1000)
		wcs := k.completes(k.cq, 2)
		require.Equal(t, []iwarp.Status{iwarp.StatusLocalAccess, iwarp.StatusFlushed}, statuses(wcs))
		require.ErrorIs(t, wcs[0].Err(), iwarp.ErrInvalidSTag)
	})
}

// TestARCH_11_ReadInFrontOfAMessageThatWaits: the Read is answered, although both have come together.
func TestARCH_11_ReadInFrontOfAMessageThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{network: "pipe", server: iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever}})
		_, source := server.register(8, stag.LocalWrite|stag.RemoteRead, nil)
		_, sink := client.register(8, stag.LocalWrite, nil)
		require.NoError(t, client.qp.PostSend(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{sink.Slice(0, 8)}, Remote: source.Advertise(0, 8)},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend}))
		synctest.Wait()
		require.Equal(t, []uint64{1, 2}, ids(client.completes(client.qp.SendCQ(), 2)))
		require.NoError(t, client.qp.Abort())
		require.NoError(t, server.qp.Abort())
	})
}

// TestFirstMessageThatWaitsLetsTheResponderSend: the message has come (RFC 5044 section 7.1.2), even if it has not yet
// found its receive.
func TestFirstMessageThatWaitsLetsTheResponderSend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{
			network: "pipe", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{ClientServer: true}}, server: iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever},
		})
		require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		require.NoError(t, server.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
		synctest.Wait()
		require.Equal(t, []uint64{1}, ids(client.completes(client.qp.RecvCQ(), 1)))
		require.NoError(t, client.qp.Abort())
		require.NoError(t, server.qp.Abort())
	})
}

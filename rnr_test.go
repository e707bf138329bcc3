package iwarp

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

func TestMessageWaitsForAReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		for msn := range uint32(3) {
			k.p.writes(fpdu(send(msn+1, 0, "hi")))
			k.p.writes(fpdu(write(k.mr.STag(), uint64(msn), "w")))
			time.Sleep(DefaultRNRWait - time.Nanosecond)
			k.wantNoCompletion("the message waits")
			require.Zero(t, k.mem[msn], "and nothing behind it is taken")
			require.NoError(t, k.qp.PostRecv(RecvWR{ID: uint64(msn), Local: k.at(64, 8)}))
			synctest.Wait()
			k.wantCompletions("a receive in time takes it", uint64(msn))
			require.EqualValues(t, 'w', k.mem[msn], "and the stream goes on")
		}
		require.Equal(t, StateRTS, k.qp.State(), "each message has a wait of its own")
		require.NoError(t, k.qp.Abort())
	})
}

// TestARCH_11_WaitThatEndsAsAReceiveIsPosted: the message takes the receive, be it in a run,
// and the next one may wait as long as any.
func TestARCH_11_WaitThatEndsAsAReceiveIsPosted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: k.at(0, 8)}))
		k.qp.GiveUp() // which the end of the wait does
		k.p.writes(fpdu(send(1, 0, "hi")))
		k.wantCompletions("it takes the receive", 1)
		k.p.writes(fpdu(send(2, 0, "hi")))
		time.Sleep(DefaultRNRWait - time.Nanosecond)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 2, Local: k.at(0, 8)}))
		k.wantCompletions("the next has waited", 2)
		require.NoError(t, k.qp.Abort())
	})
}

func TestARCH_11_MessageWaitsNoLongerThanRNRWait(t *testing.T) {
	for _, wait := range []time.Duration{-1, time.Nanosecond, 300 * time.Millisecond, 0} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, QPConfig{RNRWait: wait}, nil)
			k.posts(SendWR{ID: 7, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote})
			k.p.segment()
			start := time.Now()
			bad := send(1, 0, "hi")
			k.p.writes(fpdu(bad))
			want := wait
			if wait == 0 {
				want = DefaultRNRWait
				time.Sleep(want - patience/2)
			}
			require.Equal(t, terminate(0x1202, tellsHeader, bad), k.p.segment(), "no buffer")
			require.Equal(t, max(want, 0), time.Since(start), "it ends when RNRWait is over")
			k.p.wantEnd("nothing follows")
			require.NoError(t, k.p.c.Close())
			<-k.qp.Done()
			require.ErrorIs(t, k.qp.Err(), ErrNoReceive)
			require.ErrorIs(t, k.qp.PostRecv(RecvWR{}), ErrNoReceive, "a receive that comes too late is told why")
			require.Equal(t, []Status{StatusFlushed}, statuses(k.completes(k.cq, 1)))
		})
	}
}

// TestARCH_11_EventOfAMessageThatWaits: one for each wait, after its first second, and only
// where the wait is longer.
func TestARCH_11_EventOfAMessageThatWaits(t *testing.T) {
	for name, c := range map[string]struct{ wait, stall time.Duration }{
		"default":                     {0, 29 * time.Second},
		"no limit":                    {RNRWaitForever, 24 * time.Hour},
		"a little more than a second": {RNRNotice + 1, RNRNotice},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, QPConfig{RNRWait: c.wait}, nil)
				for msn := range uint32(2) {
					k.p.writes(fpdu(send(msn+1, 0, "hi")))
					time.Sleep(RNRNotice - time.Nanosecond)
					k.wantEvents("none before the first second is over")
					time.Sleep(time.Nanosecond)
					e := k.wantEvents("then one", EventNoReceive)
					require.Same(t, k.qp, e.QP)
					require.ErrorIs(t, e.Err, ErrNoReceive)
					require.NotErrorIs(t, e.Err, net.ErrClosed, "the QP has not ended")
					time.Sleep(c.stall - RNRNotice)
					k.wantEvents("and no more")
					require.Equal(t, StateRTS, k.qp.State())
					require.NoError(t, k.qp.PostRecv(RecvWR{ID: uint64(msn), Local: k.at(64, 8)}))
					k.wantCompletions("it has waited for the receive", uint64(msn))
				}
				require.NoError(t, k.qp.Abort())
			})
		})
	}
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{RNRWait: RNRNotice}, nil)
		k.p.writes(fpdu(send(1, 0, "hi")))
		k.wantTerminate("no buffer", 0x1202)
		<-k.qp.Done()
		k.wantEvents("the end tells enough", EventTerminated)
	})
}

// TestHandlerThatStallsOnce: a server that is busy for some seconds loses no client.
func TestHandlerThatStallsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{network: "pipe"})
		ctx := testContext(t)
		require.NoError(t, client.qp.Send(ctx))
		time.Sleep(10 * time.Second)
		_, err := server.qp.Recv(ctx, SGE{})
		require.NoError(t, err)
		require.NoError(t, client.qp.Err())
	})
}

// TestPeerHasNoReceive: what the sender makes of it.
func TestPeerHasNoReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote}, SendWR{ID: 2, Op: OpSend})
		k.p.segment()
		bad := k.p.segment()
		k.p.writes(fpdu(terminate(0x1202, tellsHeader, bad)))
		k.p.wantEnd("the end")
		require.NoError(t, k.p.c.Close())
		wcs := k.completes(k.cq, 2)
		require.Equal(t, []Status{StatusFlushed, StatusNoReceive}, statuses(wcs), "the Send that the Terminate names")
		require.ErrorIs(t, wcs[1].Err(), ErrNoReceive)
	})
}

// TestWaitForAReceiveHoldsThePeerBack: over real sockets, too, nothing is read.
func TestWaitForAReceiveHoldsThePeerBack(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: network, server: QPConfig{RNRWait: time.Minute}, client: QPConfig{SendDepth: 64}})
			const n = 1 << 20
			src, srcMR := client.register(n, 0, nil)
			fillRandom(src)
			dst, dstMR := server.register(n, stag.LocalWrite, nil)
			const messages = 32 // more than sockets hold
			for i := range messages {
				require.NoError(t, client.qp.PostSend(SendWR{ID: uint64(i), Op: OpSend, Local: []SGE{srcMR.Slice(0, n)}}))
			}
			time.Sleep(50 * time.Millisecond)
			require.Less(t, client.qp.SendCQ().Poll(make([]WC, messages)), messages, "the sender cannot have sent all")
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
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: k.at(0, 4)}, RecvWR{ID: 2, Local: k.at(4, 4)}, RecvWR{ID: 3, Local: k.at(8, 4)}))
		k.p.writes(fpdu(send(1, 0, "two")))
		bad := send(2, 0, "five!")
		k.p.writes(fpdu(bad))
		require.Equal(t, terminate(0x1205, tellsHeader, bad), k.p.segment())
		k.p.wantEnd("nothing follows")
		require.NoError(t, k.p.c.Close())
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []uint64{1, 2, 3}, ids(wcs), "in order")
		require.Equal(t, []Status{StatusSuccess, StatusLocalLength, StatusFlushed}, statuses(wcs))
		require.EqualValues(t, 3, wcs[0].Len, "what has come, and not what there is room for")
		require.ErrorIs(t, wcs[1].Err(), ErrBounds)
		require.Equal(t, "two\x00\x00\x00\x00\x00", string(k.mem[:8]))
	})
}

func TestReceiveWhoseRegionIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		_, mr := k.register(8, stag.LocalWrite, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: []SGE{mr.Slice(0, 8)}}, RecvWR{ID: 2}))
		require.NoError(t, mr.Invalidate(testContext(t)))
		k.p.writes(fpdu(send(1, 0, "x")))
		k.wantTerminate("a local error", 0x1000)
		wcs := k.completes(k.cq, 2)
		require.Equal(t, []Status{StatusLocalAccess, StatusFlushed}, statuses(wcs))
		require.ErrorIs(t, wcs[0].Err(), ErrInvalidSTag)
	})
}

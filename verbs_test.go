package iwarp_test

import (
	"bytes"
	"context"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// draft-hilland-rddp-verbs, where no test of a part covers it already.

// TestVERBS_3_RemoteUseOfSTagZero: it ends the stream, whatever its purpose.
func TestVERBS_3_RemoteUseOfSTagZero(t *testing.T) {
	for what, x := range map[string]struct {
		segment []byte
		code    uint16
	}{
		"a Write":                {wiretest.Write(0, 0, "x"), 0x1100},
		"a Read Request":         {wiretest.ReadRequest(1, 5, 6, 1, 0, 0), 0x0100},
		"a Send with Invalidate": {wiretest.Untagged(0x41, 0x44, 0, 0, 1, 0, ""), 0x0209},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}))
				k.p.Send(x.segment)
				k.wantTerminate("STag 0 names nothing", x.code)
				require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
			})
		})
	}
}

// TestVERBS_36_MessageRightAfterTheReplyIsNotLost: it comes in the same octets, while the QP is still Idle.
func TestVERBS_36_MessageRightAfterTheReplyIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		_, mr := s.register(8, stag.LocalWrite, nil)
		posts := func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 8)}})
		}
		require.NoError(t, s.dialTo(iwarp.QPConfig{Setup: posts, MPA: iwarp.MPAOptions{Revision: 1}}, func(p *wiretest.Peer) {
			p.WantRequest("40 01 0000")
			p.Write(append(append([]byte(wiretest.ReplyKey), wiretest.Hex("40 01 0000")...), wiretest.FPDU(wiretest.Send(1, 0, "early"))...))
			require.Equal(t, wiretest.Send(1, 0, ""), p.Segment(), "the first message of this side has MSN 1")
		}))
		require.Equal(t, iwarp.WC{ID: 1, QP: s.qp, Op: iwarp.OpRecv, Len: 5}, s.completes(s.qp.RecvCQ(), 1)[0])
		require.NoError(t, s.qp.Send(testContext(t)))
		synctest.Wait()
		require.NoError(t, s.qp.Abort())
	})
}

// TestVERBS_38_PeerEndsWhenAllIsDone: both sides have completed their work. The end is graceful, and is reported.
func TestVERBS_38_PeerEndsWhenAllIsDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 3}))
		k.p.Segment()
		k.p.Segment()
		k.answersRead(0, "x")
		k.wantCompletions("our work", 1, 2)
		k.p.Send(wiretest.ReadRequest(1, 0x77, 0, 1, k.mr.STag(), 0))
		require.Equal(t, wiretest.ReadResponse(0xc1, 0x77, 0, "x"), k.p.Segment())
		k.p.CloseWrite()
		k.p.WantEOF("the FIN is answered by ours, and by no Terminate")
		<-k.qp.Done()
		require.Equal(t, iwarp.StateIdle, k.qp.State())
		require.NoError(t, k.qp.Err())
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
		require.NoError(t, k.wantEvent(iwarp.EventClosed).Err)
	})
}

// TestVERBS_39_PeerEndsWithWorkOutstanding: our work, which the peer can no longer answer, or its own, for which it does
// not wait.
func TestVERBS_39_PeerEndsWithWorkOutstanding(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{}, nil)
			k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
			k.p.Segment()
			k.p.CloseWrite()
			k.wantTerminate("bad close: 0/2/07", 0x0207)
			require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
			require.Equal(t, iwarp.StateError, k.qp.State())
			k.wantEvent(iwarp.EventTerminated)
		})
	})
	t.Run("ours, of which most is to be sent", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{}, nil)
			const n = 64 << 20
			_, mr := k.register(n, stag.LocalWrite, nil)
			remote := remote
			remote.Len = n
			k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, n)}, Remote: remote}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
			k.p.Segment()
			k.p.CloseWrite()
			synctest.Wait()
			require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed)
			shut := make(chan error, 1)
			go func() { shut <- k.rnic.Shutdown(context.Background()) }()
			synctest.Wait()
			sent := 0
			for s := k.p.Segment(); s[1]&0xf != 7; s = k.p.Segment() {
				sent += len(s)
			}
			require.Less(t, sent, n/4, "the rest is not sent to a peer that takes no more")
			k.p.Close()
			require.ErrorContains(t, <-shut, "the peer ended its half with 2 work requests")
			require.Equal(t, []iwarp.Status{iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(k.completes(k.cq, 2)))
		})
	})
	t.Run("its own", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: "pipe", client: committing, server: committing})
			m := medium{hold: make(chan struct{})}
			_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m})
			require.NoError(t, client.qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8)}}))
			synctest.Wait()
			require.True(t, m.hasBegun())
			require.NoError(t, client.qp.CloseSend())
			<-client.qp.Done()
			te := client.qp.Terminated()
			require.NotNil(t, te, "the half that is still open carries the Terminate")
			require.Equal(t, iwarp.TerminateError{Type: 2, Code: 7, Remote: true}, *te)
			close(m.hold)
			<-server.qp.Done()
			server.wantEvent(iwarp.EventTerminated)
		})
	})
}

// TestPeerEndsInTheMiddleOfAMessage: all work is done, but the message is not complete, and otherwise neither side would
// learn of it.
func TestPeerEndsInTheMiddleOfAMessage(t *testing.T) {
	const whole, part = 0x41, 0x01
	for what, c := range map[string]struct {
		segments func(k *talk) [][]byte
		cut      bool
	}{
		"a Send": {func(*talk) [][]byte { return [][]byte{wiretest.Untagged(part, 0x43, 0, 0, 1, 0, "ha")} }, true},
		"an empty segment of one": {func(*talk) [][]byte {
			return [][]byte{wiretest.Untagged(part, 0x43, 0, 0, 1, 0, "")}
		}, true},
		"a Write": {func(k *talk) [][]byte { return [][]byte{wiretest.Tagged(0x81, 0x40, k.mr.STag(), 0, "ha")} }, true},
		"a Write after Sends": {func(k *talk) [][]byte {
			return [][]byte{
				wiretest.Untagged(whole, 0x43, 0, 0, 1, 0, "1"), wiretest.Untagged(whole, 0x43, 0, 0, 2, 0, "2"),
				wiretest.Tagged(0x81, 0x40, k.mr.STag(), 0, "ha"),
			}
		}, true},
		"after a Write and Sends": {func(k *talk) [][]byte {
			return [][]byte{
				wiretest.Tagged(0x81, 0x40, k.mr.STag(), 0, "ha"), wiretest.Tagged(0xc1, 0x40, k.mr.STag(), 2, "lf"),
				wiretest.Untagged(whole, 0x43, 0, 0, 1, 0, "1"), wiretest.Untagged(whole, 0x43, 0, 0, 2, 0, "2"),
			}
		}, false},
		"after Sends that were sent in place of the rest": {func(k *talk) [][]byte {
			return [][]byte{
				wiretest.Tagged(0x81, 0x40, k.mr.STag(), 0, "ha"),
				wiretest.Untagged(whole, 0x43, 0, 0, 1, 0, "1"), wiretest.Untagged(whole, 0x43, 0, 0, 2, 0, "2"),
			}
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(100, 8)}, iwarp.RecvWR{ID: 2, Local: k.at(200, 8)}))
				k.p.Send(c.segments(k)...)
				k.p.CloseWrite()
				if !c.cut {
					require.NoError(t, k.wantEvent(iwarp.EventClosed).Err)
					return
				}
				k.wantTerminate("bad close: 0/2/07", 0x0207)
				k.wantEvent(iwarp.EventTerminated)
				require.ErrorContains(t, k.qp.Err(), "in the middle of a message")
			})
		})
	}
}

// TestPeerEndsInTheMiddleOfAMessageAfterClose: our half has ended and cannot tell the peer, but the message is lost.
func TestPeerEndsInTheMiddleOfAMessageAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{Local: k.at(0, 8)}))
		k.p.Send(wiretest.Untagged(0x01, 0x43, 0, 0, 1, 0, "half"))
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- k.qp.Close() }()
		k.p.WantEOF("our half ends")
		k.p.CloseWrite()
		require.NoError(t, <-closed)
		k.wantEvent(iwarp.EventTerminated)
		require.ErrorContains(t, k.qp.Err(), "in the middle of a message")
		require.Equal(t, iwarp.StateError, k.qp.State())
	})
}

// TestVERBS_44_OneErrorAndAllElseIsFlushed: one message ends the QP. Its receive reports the error, and nothing else in
// either queue does, sent or not.
func TestVERBS_44_OneErrorAndAllElseIsFlushed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence},
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Flags: iwarp.Unsignaled})
		for id := range uint64(3) {
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 4 + id, Local: k.at(8, 4)}))
		}
		k.p.Segment()
		k.p.Send(wiretest.Send(1, 0, "five!"))
		k.wantTerminate("the message is too long", 0x1205)
		require.Equal(t, iwarp.StateError, k.qp.State())
		wcs := k.completes(k.cq, 6)
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, ids(wcs), "all of them, in the order of their queues")
		require.Equal(t, []iwarp.Status{
			iwarp.StatusFlushed, iwarp.StatusFlushed, iwarp.StatusFlushed, iwarp.StatusLocalLength, iwarp.StatusFlushed, iwarp.StatusFlushed,
		}, statuses(wcs))
		k.wantNoCompletion("and each once")
	})
}

// TestVERBS_67_ORDPausesTheQueue: a Read that exceeds the ORD waits, and so does all work after it. That is not an
// error.
func TestVERBS_67_ORDPausesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{ORD: 1}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: k.at(1, 1), Remote: remote},
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
		require.Equal(t, wiretest.ReadRequest(1, k.mr.STag(), 0, 1, remote.STag, remote.TO), k.p.Segment())
		k.p.WantIdle("one Read is outstanding", time.Minute)
		k.answersRead(0, "a")
		require.Equal(t, wiretest.ReadRequest(2, k.mr.STag(), 1, 1, remote.STag, remote.TO), k.p.Segment())
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		k.answersRead(1, "b")
		k.wantCompletions("in order", 1, 2, 3)
		require.Equal(t, iwarp.StateRTS, k.qp.State())
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_70_CompletedMemoryIsTheCallersAgain: changes made to it then are neither sent
// nor overwritten.
func TestVERBS_70_CompletedMemoryIsTheCallersAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 300 << 10 // the pipe holds 64 KiB
		k := newTalk(t, iwarp.QPConfig{}, nil)
		source, mr := k.register(n, 0, nil)
		fillRandom(source)
		was := bytes.Clone(source)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, n)}, Remote: iwarp.RemoteBuffer{Len: n}})
		k.wantNoCompletion("the connection has not taken all of it")
		read := make(chan []byte)
		go func() {
			var got []byte
			for len(got) < n {
				got = append(got, k.p.Segment()[14:]...)
				time.Sleep(time.Millisecond)
			}
			read <- got
		}()
		k.wantCompletions("now it has", 1)
		clear(source)
		require.True(t, bytes.Equal(was, <-read), "the peer gets what the memory held before")

		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 2, Local: k.at(0, 8)}, iwarp.RecvWR{ID: 3, Local: k.at(8, 8)}))
		k.p.Send(wiretest.Send(1, 0, "first"))
		k.wantCompletions("a message", 2)
		copy(k.mem, "mine now")
		k.p.Send(wiretest.Send(2, 0, "second"))
		k.wantCompletions("another", 3)
		require.Equal(t, "mine nowsecond", string(k.mem[:14]))

		k.posts(iwarp.SendWR{ID: 4, Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote})
		k.p.Segment()
		k.answersRead(0, "read")
		k.wantCompletions("the Read", 4)
		copy(k.mem, "mine again")
		k.answersRead(0, "evil")
		k.wantTerminate("its response comes once", 0x0206)
		require.Equal(t, "mine again", string(k.mem[:10]))
	})
}

// TestVERBS_90_RefusedWorkLeavesNothingBehind: neither an occupied slot nor a trace in the next work request.
func TestVERBS_90_RefusedWorkLeavesNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const depth = 4
		k := newTalk(t, iwarp.QPConfig{SendDepth: depth, RecvDepth: depth}, nil)
		for range 2 * depth {
			require.Error(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.ReadFence, Local: k.at(0, 9), Remote: iwarp.RemoteBuffer{TO: 7, Len: 8}}))
			require.Error(t, k.qp.PostRecv(iwarp.RecvWR{ID: 9, Local: []iwarp.SGE{k.mr.Slice(0, 1), k.mr.Slice(0, talkMem+1)}}))
		}
		sends, recvs := make([]iwarp.SendWR, depth), make([]iwarp.RecvWR, depth)
		for i := range depth {
			sends[i] = iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend}
			recvs[i] = iwarp.RecvWR{ID: uint64(10 + i)}
		}
		require.NoError(t, k.qp.PostSend(sends...), "every slot is free")
		require.NoError(t, k.qp.PostRecv(recvs...))
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), iwarp.ErrQueueFull)
		require.ErrorIs(t, k.qp.PostRecv(iwarp.RecvWR{}), iwarp.ErrQueueFull)
		for i := range uint32(depth) {
			require.Equal(t, wiretest.Send(i+1, 0, ""), k.p.Segment(), "an empty Send is one")
		}
		k.wantCompletions("in order", 0, 1, 2, 3)
		k.p.Send(wiretest.Send(1, 0, ""))
		k.wantCompletions("a receive of no length", 10)
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_57_FourSGEsByDefault: and more.
func TestVERBS_57_FourSGEsByDefault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		copy(k.mem, "abcd")
		four := []iwarp.SGE{k.mr.Slice(3, 1), k.mr.Slice(2, 1), k.mr.Slice(1, 1), k.mr.Slice(0, 1)}
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Local: four})
		require.Equal(t, wiretest.Send(1, 0, "dcba"), k.p.Segment())
		k.wantCompletions("the Send", 1)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 2, Local: four}))
		k.p.Send(wiretest.Send(1, 0, "1234"))
		k.wantCompletions("the receive", 2)
		require.Equal(t, "4321", string(k.mem[:4]))
		many := make([]iwarp.SGE, k.rnic.Limits().MaxSGE+1)
		for i := range many {
			many[i] = k.mr.Slice(0, 1)
		}
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: many}), iwarp.ErrLimit)
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: many, Remote: iwarp.RemoteBuffer{Len: math.MaxUint32}}), iwarp.ErrLimit)
		require.ErrorIs(t, k.qp.PostRecv(iwarp.RecvWR{Local: many}), iwarp.ErrLimit)
		require.NoError(t, k.qp.Abort())
	})
}

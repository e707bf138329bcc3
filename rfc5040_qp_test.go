package iwarp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_38_75_81_ARCH_36_ErrorsReachTheApplication: by completion, event, Err and Terminated,
// on the side that found the error.
func TestRDMAP_38_75_81_ARCH_36_ErrorsReachTheApplication(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{ORD: 1}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: k.at(4, 4), Remote: remote}, // not given to DDP: the ORD is 1
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
		k.p.Segment()
		k.answersRead(0, "good")
		k.wantCompletions("the response completes the Read", 1)
		require.Equal(t, wiretest.ReadRequest(2, k.mr.STag(), 4, 4, remote.STag, remote.TO), k.p.Segment())
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		k.posts(iwarp.SendWR{ID: 4, Op: iwarp.OpRDMARead, Local: k.at(8, 4), Remote: remote}) // waits for the second
		k.p.Send(wiretest.Write(0x99, 0, "x"))
		k.wantTerminate("invalid STag", 0x1100)
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []uint64{2, 3, 4}, ids(wcs))
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed, iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(wcs),
			"operations that were not given to DDP complete in error, too")
		require.ErrorIs(t, k.qp.Err(), iwarp.ErrInvalidSTag)
		require.Equal(t, uint8(1), k.qp.Terminated().Layer)
		require.ErrorIs(t, k.wantEvent(iwarp.EventTerminated).Err, iwarp.ErrInvalidSTag)
	})
}

// TestRDMAP_99_OverlappingTargets: after two Writes to the same octets, the later one's data remain, since this
// implementation places in order. RFC 5040 promises less.
func TestRDMAP_99_OverlappingTargets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		k.p.Send(wiretest.Write(k.mr.STag(), 0, "aaaa"))
		k.p.Send(wiretest.Write(k.mr.STag(), 2, "bbbb"))
		k.p.Send(wiretest.Send(1, 0, ""))
		k.wantCompletions("after both", 1)
		require.Equal(t, "aabbbb", string(k.mem[:6]))
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_113_IRDCanBeSet: a peer that keeps to it is served.
func TestRDMAP_113_IRDCanBeSet(t *testing.T) {
	for _, ird := range []int{1, 2, 5} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{IRD: ird}, nil)
			require.Equal(t, ird, k.qp.IRD())
			p, responder := initiator(t, k.rnic, "pipe", &iwarp.QPConfig{PD: k.pd, IRD: ird})
			require.Equal(t, ird, responder.IRD(), "on either side")
			for msn := range ird {
				p.Send(wiretest.ReadRequest(uint32(msn+1), 7, 0, 0, 0, 0))
			}
			for range ird {
				require.Equal(t, wiretest.ReadResponse(0xc1, 7, 0, ""), p.Segment())
			}
			require.NoError(t, responder.Abort())
			copy(k.mem, "0123456789")
			for msn := range 10 {
				k.p.Send(wiretest.ReadRequest(uint32(msn+1), 7, uint64(msn), 1, k.mr.STag(), uint64(msn)))
				if msn%ird == ird-1 || msn == 9 {
					for first := msn - msn%ird; first <= msn; first++ {
						require.Equal(t, wiretest.ReadResponse(0xc1, 7, uint64(first), "0123456789"[first:first+1]), k.p.Segment())
					}
				}
			}
			require.Equal(t, iwarp.StateRTS, k.qp.State())
			require.NoError(t, k.qp.Abort())
		})
	}
}

// TestRDMAP_126_SEC_3_17_SharedRegionIsNotThePeersToInvalidate: a region of many streams stays valid.
func TestRDMAP_126_SEC_3_17_SharedRegionIsNotThePeersToInvalidate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		k.p.Send(wiretest.Untagged(0x41, 0x44, uint32(k.mr.STag()), 0, 1, 0, ""))
		k.wantTerminate("the region is not bound to this QP: 0/1/09", 0x0109)
		require.True(t, k.mr.Valid())
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed}, statuses(k.completes(k.cq, 1)))
	})
}

// TestDDP_50_SourceCompletion: it means that the LLP has accepted the data, not that the peer has it.
func TestDDP_50_SourceCompletion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMAWrite, Local: k.at(0, 8), Remote: remote})
		k.wantCompletions("though the peer has read nothing", 1)
		for id := range uint64(100) { // more than the connection holds
			k.posts(iwarp.SendWR{ID: id, Op: iwarp.OpRDMAWrite, Local: k.at(0, talkMem), Remote: remote})
		}
		synctest.Wait()
		require.Less(t, k.cq.Poll(make([]iwarp.WC, 100)), 100, "what the LLP has not taken is not complete")
		require.NoError(t, k.qp.Abort())
	})
}

// TestDDP_53_62_63_76_TerminateGoesOutFirst: the Terminate and our FIN go out,
// and only then is the connection closed.
func TestDDP_53_62_63_76_TerminateGoesOutFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, ro := k.register(8, stag.LocalWrite, nil)
		bad := wiretest.Write(ro.STag(), 0, "x")
		k.p.Send(bad)
		k.p.Segment()
		k.p.WantEOF("the half that the error did not touch carries the message")
		require.Equal(t, iwarp.StateTerminate, k.qp.State())
		k.p.Write([]byte("anything")) // the connection still takes it
		k.p.Close()
		<-k.qp.Done()
	})
}

// TestRDMAP_112_NothingButRDMAMessagesIsSent: from the Reply to the end of the connection, only FPDUs with RDMA messages
// are on the wire, whatever the application does.
func TestRDMAP_112_NothingButRDMAMessagesIsSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		mem, mr := s.register(8, stag.LocalWrite|stag.RemoteRead, nil)
		_, unused := s.register(8, stag.LocalWrite, nil)
		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex("40 01 00 00"))
		qp, err := cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd})
		require.NoError(t, err)
		p.WantReply("the Reply is the last of MPA's own frames", "40 01 00 00")
		require.ErrorIs(t, cr.Reject([]byte("too late")), iwarp.ErrAnswered)
		_, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: s.pd})
		require.ErrorIs(t, err, iwarp.ErrAnswered)
		p.WantIdle("nor does a responder send before it may", time.Second)

		p.Send(wiretest.ReadRequest(1, 7, 0, 8, mr.STag(), 0))
		require.NoError(t, qp.PostSend(
			iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("w"), Remote: remote},
			iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Invalidate: unused.STag()},
			iwarp.SendWR{Op: iwarp.OpRDMARead}, iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: remote}, iwarp.SendWR{Op: iwarp.OpImmediate}))
		sent := map[byte][]byte{}
		for range 6 {
			g := p.Segment()
			require.NotContains(t, sent, g[1])
			sent[g[1]] = g
		}
		require.Equal(t, map[byte][]byte{
			0x42: wiretest.ReadResponse(0xc1, 7, 0, string(mem)),
			0x43: wiretest.Send(1, 0, ""),
			0x40: wiretest.Write(remote.STag, remote.TO, "w"),
			0x41: wiretest.ReadRequest(1, 0, 0, 0, 0, 0),
			0x4a: atomicRequest(2, 0, remote.STag, remote.TO, 0, 0, 0, allBits),
			0x48: wiretest.Untagged(0x41, 0x48, 0, 0, 2, 0, string(make([]byte, 8))),
		}, sent, "one message for each work request that sends anything")
		p.Write(append(wiretest.FPDU(wiretest.ReadResponse(0xc1, 0, 0, "")), wiretest.FPDU(atomicResponse(1, 2, 0))...))
		closed := make(chan error, 1)
		go func() { closed <- qp.Close() }()
		p.WantEOF("and then the end")
		p.Close()
		require.NoError(t, <-closed)
	})
}

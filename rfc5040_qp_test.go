package iwarp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_38_75_81_ARCH_36_ErrorsReachTheApplication: by completion, event, Err and Terminated,
// on the side that found the error.
func TestRDMAP_38_75_81_ARCH_36_ErrorsReachTheApplication(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{ORD: 1}, nil)
		k.posts(
			SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 4), Remote: remote},
			SendWR{ID: 2, Op: OpRDMARead, Local: k.at(4, 4), Remote: remote}, // not given to DDP: the ORD is 1
			SendWR{ID: 3, Op: OpSend})
		k.p.segment()
		k.answersRead(0, "good")
		k.wantCompletions("the response reaches who asked", 1)
		require.Equal(t, readRequest(2, k.mr.STag(), 4, 4, remote.STag, remote.TO), k.p.segment())
		require.Equal(t, send(1, 0, ""), k.p.segment())
		k.posts(SendWR{ID: 4, Op: OpRDMARead, Local: k.at(8, 4), Remote: remote}) // waits for the second
		k.p.writes(fpdu(write(0x99, 0, "x")))
		k.wantTerminate("invalid STag", 0x1100)
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []uint64{2, 3, 4}, ids(wcs))
		require.Equal(t, []Status{StatusFlushed, StatusFlushed, StatusFlushed}, statuses(wcs),
			"operations that were not given to DDP complete in error, too")
		require.ErrorIs(t, k.qp.Err(), ErrInvalidSTag)
		require.Equal(t, uint8(1), k.qp.Terminated().Layer)
		require.ErrorIs(t, k.wantEvent(EventTerminated).Err, ErrInvalidSTag)
	})
}

// TestRDMAP_99_OverlappingTargets: two Writes to the same octets leave what the later
// one says, for this implementation places in order; RFC 5040 promises less.
func TestRDMAP_99_OverlappingTargets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1}))
		k.p.writes(fpdu(write(k.mr.STag(), 0, "aaaa")))
		k.p.writes(fpdu(write(k.mr.STag(), 2, "bbbb")))
		k.p.writes(fpdu(send(1, 0, "")))
		k.wantCompletions("behind both", 1)
		require.Equal(t, "aabbbb", string(k.mem[:6]))
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_113_IRDCanBeSet: and the peer that keeps to it is served.
func TestRDMAP_113_IRDCanBeSet(t *testing.T) {
	for _, ird := range []int{1, 2, 5} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, QPConfig{IRD: ird}, nil)
			require.Equal(t, ird, k.qp.IRD())
			p, responder := initiator(t, k.rnic, "pipe", &QPConfig{PD: k.pd, IRD: ird})
			require.Equal(t, ird, responder.IRD(), "on either side")
			for msn := range ird {
				p.writes(fpdu(readRequest(uint32(msn+1), 7, 0, 0, 0, 0)))
			}
			for range ird {
				require.Equal(t, response(0xc1, 7, 0, ""), p.segment())
			}
			require.NoError(t, responder.Abort())
			copy(k.mem, "0123456789")
			for msn := range 10 {
				k.p.writes(fpdu(readRequest(uint32(msn+1), 7, uint64(msn), 1, k.mr.STag(), uint64(msn))))
				if msn%ird == ird-1 || msn == 9 {
					for first := msn - msn%ird; first <= msn; first++ {
						require.Equal(t, response(0xc1, 7, uint64(first), "0123456789"[first:first+1]), k.p.segment())
					}
				}
			}
			require.Equal(t, StateRTS, k.qp.State())
			require.NoError(t, k.qp.Abort())
		})
	}
}

// TestRDMAP_126_SEC_3_17_SharedRegionIsNotThePeersToInvalidate: a region of many streams stays.
func TestRDMAP_126_SEC_3_17_SharedRegionIsNotThePeersToInvalidate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1}))
		k.p.writes(fpdu(untagged(0x41, 0x44, uint32(k.mr.STag()), 0, 1, 0, "")))
		k.wantTerminate("the region is not bound to this QP: 0/1/09", 0x0109)
		require.True(t, k.mr.Valid())
		require.Equal(t, []Status{StatusFlushed}, statuses(k.completes(k.cq, 1)))
	})
}

// TestDDP_50_SourceCompletion: it means that the LLP took over, not that the peer has
// it.
func TestDDP_50_SourceCompletion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(SendWR{ID: 1, Op: OpRDMAWrite, Local: k.at(0, 8), Remote: remote})
		k.wantCompletions("though the peer has read nothing", 1)
		for id := range uint64(100) { // more than the connection holds
			k.posts(SendWR{ID: id, Op: OpRDMAWrite, Local: k.at(0, talkMem), Remote: remote})
		}
		synctest.Wait()
		require.Less(t, k.cq.Poll(make([]WC, 100)), 100, "what the LLP has not taken is not complete")
		require.NoError(t, k.qp.Abort())
	})
}

// TestDDP_53_62_63_76_TerminateGoesOutFirst: the Terminate and our FIN go out,
// and only then is the connection closed.
func TestDDP_53_62_63_76_TerminateGoesOutFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		_, ro := k.register(8, stag.LocalWrite, nil)
		bad := write(ro.STag(), 0, "x")
		k.p.writes(fpdu(bad))
		k.p.segment()
		k.p.wantEnd("the half that the error did not touch carries the message")
		require.Equal(t, StateTerminate, k.qp.State())
		k.p.writes([]byte("anything")) // the connection still takes it
		require.NoError(t, k.p.c.Close())
		<-k.qp.Done()
	})
}

// TestRDMAP_112_NothingButRDMAMessagesIsSent: from the Reply to the end of the connection
// there is nothing on the wire but FPDUs with RDMA messages, whatever the application does.
func TestRDMAP_112_NothingButRDMAMessagesIsSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		mem, mr := s.register(8, stag.LocalWrite|stag.RemoteRead, nil)
		_, unused := s.register(8, stag.LocalWrite, nil)
		p, cr := requester(t, s.rnic, "pipe", hx("40 01 00 00"))
		qp, err := cr.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.NoError(t, err)
		p.wantOctets("the Reply is the last of MPA's own frames", append([]byte(replyKey), hx("40 01 00 00")...))
		require.ErrorIs(t, cr.Reject([]byte("too late")), ErrAnswered)
		_, err = cr.Accept(testContext(t), &QPConfig{PD: s.pd})
		require.ErrorIs(t, err, ErrAnswered)
		p.wantIdle("nor does a responder send before it may", time.Second)

		p.writes(fpdu(readRequest(1, 7, 0, 8, mr.STag(), 0)))
		require.NoError(t, qp.PostSend(
			SendWR{Op: OpSend}, SendWR{Op: OpRDMAWrite, Inline: []byte("w"), Remote: remote},
			SendWR{Op: OpLocalInvalidate, Invalidate: unused.STag()},
			SendWR{Op: OpRDMARead}, SendWR{Op: OpFetchAdd, Remote: remote}, SendWR{Op: OpImmediate}))
		sent := map[byte][]byte{}
		for range 6 {
			g := p.segment()
			require.NotContains(t, sent, g[1])
			sent[g[1]] = g
		}
		require.Equal(t, map[byte][]byte{
			0x42: response(0xc1, 7, 0, string(mem)),
			0x43: send(1, 0, ""),
			0x40: write(remote.STag, remote.TO, "w"),
			0x41: readRequest(1, 0, 0, 0, 0, 0),
			0x4a: atomicRequest(2, 0, remote.STag, remote.TO, 0, 0, 0, allBits),
			0x48: untagged(0x41, 0x48, 0, 0, 2, 0, string(make([]byte, 8))),
		}, sent, "one message for each work request that sends anything")
		p.writes(append(fpdu(response(0xc1, 0, 0, "")), fpdu(atomicResponse(1, 2, 0))...))
		closed := make(chan error, 1)
		go func() { closed <- qp.Close() }()
		p.wantEnd("and then the end")
		require.NoError(t, p.c.Close())
		require.NoError(t, <-closed)
	})
}

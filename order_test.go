package iwarp

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_105_106_110_VERBS_63_CompletionsAreInPostOrder: across kinds. A Send behind a Read is out
// at once, and completes behind it.
func TestRDMAP_105_106_110_VERBS_63_CompletionsAreInPostOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(
			SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 4), Remote: remote},
			SendWR{ID: 2, Op: OpSend, Inline: []byte("s")},
			SendWR{ID: 3, Op: OpRDMAWrite, Inline: []byte("w"), Remote: remote},
			SendWR{ID: 4, Op: OpLocalInvalidate, Invalidate: k.mr2().STag()},
			SendWR{ID: 5, Op: OpRDMARead, Local: k.at(8, 4), Remote: remote})
		require.Equal(t, readRequest(1, k.mr.STag(), 0, 4, remote.STag, remote.TO), k.p.segment())
		require.Equal(t, send(1, 0, "s"), k.p.segment(), "without a fence a Send does not wait for a Read")
		require.Equal(t, write(remote.STag, remote.TO, "w"), k.p.segment())
		require.Equal(t, readRequest(2, k.mr.STag(), 8, 4, remote.STag, remote.TO), k.p.segment())
		k.wantNoCompletion("the Read at the head has no response")
		k.p.writes(fpdu(response(0x81, k.mr.STag(), 0, "ab")))
		k.wantNoCompletion("only half of the response has come")
		k.p.writes(fpdu(response(0xc1, k.mr.STag(), 2, "cd")))
		k.wantCompletions("now everything up to the next Read", 1, 2, 3, 4)
		k.wantNoCompletion("the second Read has no response")
		k.answersRead(8, "efgh")
		k.wantCompletions("and now that one", 5)
		require.Equal(t, "abcd\x00\x00\x00\x00efgh", string(k.mem[:12]))
		require.NoError(t, k.qp.Abort())
	})
}

// mr2 is a region that nothing else uses.
func (k *talk) mr2() *MR {
	_, mr := k.register(8, stag.LocalWrite, nil)
	return mr
}

func TestVERBS_64_ReadFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		k.posts(
			SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 2), Remote: remote},
			SendWR{ID: 2, Op: OpRDMARead, Local: k.at(2, 2), Remote: remote},
			SendWR{ID: 3, Op: OpRDMAWrite, Flags: ReadFence, Inline: []byte("w"), Remote: remote},
			SendWR{ID: 4, Op: OpSend})
		k.p.segment()
		k.p.segment()
		k.p.wantIdle("the fence holds back the Write and the Send behind it", 1)
		k.answersRead(0, "ab")
		k.p.wantIdle("one Read is still out", 1)
		k.answersRead(2, "cd")
		require.Equal(t, write(remote.STag, remote.TO, "w"), k.p.segment())
		require.Equal(t, send(1, 0, ""), k.p.segment())
		k.wantCompletions("all in order", 1, 2, 3, 4)

		k.posts(SendWR{ID: 5, Op: OpSend, Flags: ReadFence})
		require.Equal(t, send(2, 0, ""), k.p.segment(), "a fence with nothing before it does not wait")
		require.NoError(t, k.qp.Abort())
	})
}

func TestVERBS_65_LocalFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		_, sink := k.register(4, stag.LocalWrite, nil)
		k.posts(
			SendWR{ID: 1, Op: OpRDMARead, Local: []SGE{sink.Slice(0, 4)}, Remote: remote},
			SendWR{ID: 2, Op: OpLocalInvalidate, Flags: LocalFence, Invalidate: sink.STag()},
			SendWR{ID: 3, Op: OpSend})
		k.p.segment()
		k.p.wantIdle("the Send waits behind the fence", 1)
		require.True(t, sink.Valid(), "the sink lives until its Read is complete")
		k.p.writes(fpdu(response(0xc1, sink.STag(), 0, "data")))
		require.Equal(t, send(1, 0, ""), k.p.segment())
		require.False(t, sink.Valid())
		k.wantCompletions("all in order", 1, 2, 3)
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_114_130_SEC_27_OutstandingReadsAreBounded: the peer counts.
func TestRDMAP_114_130_SEC_27_OutstandingReadsAreBounded(t *testing.T) {
	for _, ord := range []int{1, 3} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, QPConfig{ORD: ord}, nil)
			require.Equal(t, ord, k.qp.ORD())
			_, responder := initiator(t, k.rnic, "pipe", &QPConfig{PD: k.pd, ORD: ord})
			require.Equal(t, ord, responder.ORD(), "on either side")
			require.NoError(t, responder.Abort())
			const all = 8
			for i := range all {
				k.posts(SendWR{ID: uint64(i), Op: OpRDMARead, Local: k.at(i, 1), Remote: remote})
			}
			k.posts(SendWR{ID: all, Op: OpSend})
			asked := 0
			for answered := range all {
				for ; asked < min(answered+ord, all); asked++ {
					require.Equal(t, readRequest(uint32(asked+1), k.mr.STag(), uint64(asked), 1, remote.STag, remote.TO), k.p.segment())
				}
				if asked < all {
					k.p.wantIdle("no more Reads than ORD; what is behind waits, too", 1)
				}
				k.answersRead(answered, "x")
				k.wantCompletions("a Read whose response came", uint64(answered))
			}
			require.Equal(t, send(1, 0, ""), k.p.segment())
			k.wantCompletions("the Send in its turn", all)
			require.NoError(t, k.qp.Abort())
		})
	}
}

func TestVERBS_67_ReadWithoutORD(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{ORD: -1}, nil)
		require.Zero(t, k.qp.ORD())
		k.posts(SendWR{ID: 1, Op: OpSend}, SendWR{ID: 2, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote}, SendWR{ID: 3, Op: OpSend})
		require.Equal(t, send(1, 0, ""), k.p.segment())
		k.wantTerminate("the QP cannot do it: 0/0/00", 0x0000)
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []Status{StatusSuccess, StatusLocalOp, StatusFlushed}, statuses(wcs))
		require.ErrorIs(t, wcs[1].Err(), ErrUnsupported)
		require.ErrorIs(t, wcs[2].Err(), ErrFlushed)
	})
}

// TestRDMAP_100_ARCH_29_ReceiveImpliesEarlierWrites: a received message implies what the peer did before.
func TestRDMAP_100_ARCH_29_ReceiveImpliesEarlierWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: k.at(64, 8)}, RecvWR{ID: 2, Local: k.at(72, 8)}))
		k.p.writes(fpdu(write(k.mr.STag(), 0, "one")))
		k.p.writes(fpdu(send(1, 0, "first")))
		k.p.writes(fpdu(write(k.mr.STag(), 8, "two")))
		k.p.writes(fpdu(send(2, 0, "second")))
		k.wantCompletions("messages take receives in order", 1, 2)
		require.Equal(t, "one", string(k.mem[:3]))
		require.Equal(t, "two", string(k.mem[8:11]))
		require.Equal(t, "first\x00\x00\x00second", string(k.mem[64:78]))
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_57_CompletionOfAReceive: it tells length, event and invalidated STag.
func TestRDMAP_57_CompletionOfAReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		_, mr := k.register(8, stag.LocalWrite|stag.RemoteWrite, &MROptions{QP: k.qp})
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 1, Local: k.at(0, 9)}, RecvWR{ID: 2, Local: k.at(9, 9)}))
		k.p.writes(fpdu(untagged(0x41, 0x45, 0, 0, 1, 0, "hello")))
		k.p.writes(fpdu(untagged(0x41, 0x44, uint32(mr.STag()), 0, 2, 0, "")))
		wcs := k.completes(k.cq, 2)
		require.Equal(t, WC{ID: 1, QP: k.qp, Op: OpRecv, Flags: Solicited, Len: 5}, wcs[0])
		require.Equal(t, WC{ID: 2, QP: k.qp, Op: OpRecv, STag: mr.STag()}, wcs[1])
		require.False(t, mr.Valid(), "the STag is dead when the completion tells of it")
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_41_74_75_AttributionOfATerminate: the peer's Terminate names the request that it is
// about, by its MSN; that one gets the reason, all others are flushed.
func TestVERBS_41_74_75_AttributionOfATerminate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 8}, RecvWR{ID: 9}))
		for id := range uint64(3) {
			k.posts(SendWR{ID: id, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote})
		}
		var asked [3][]byte
		for i := range asked {
			asked[i] = k.p.segment()
		}
		k.p.writes(fpdu(terminate(0x0102, tellsRead, asked[1])))
		k.p.wantEnd("a Terminate is not answered by one")
		require.NoError(t, k.p.c.Close())
		<-k.qp.Done()
		wcs := k.completes(k.cq, 5)
		require.Equal(t, []uint64{0, 1, 2, 8, 9}, ids(wcs))
		require.Equal(t, []Status{StatusFlushed, StatusRemoteAccess, StatusFlushed, StatusFlushed, StatusFlushed}, statuses(wcs))
		require.EqualValues(t, 0x01020000, wcs[1].Vendor, "the first word of the Terminate")
		for _, wc := range wcs {
			var te *TerminateError
			require.ErrorAs(t, wc.Err(), &te)
			require.True(t, te.Remote)
		}
		require.ErrorIs(t, wcs[1].Err(), ErrAccess)
		te := k.qp.Terminated()
		require.Equal(t, TerminateError{Layer: 0, Type: 1, Code: 2, Remote: true}, *te)
		e := <-k.rnic.Events()
		require.Equal(t, EventTerminateReceived, e.Kind)
		require.Same(t, k.qp, e.QP)
		require.ErrorAs(t, e.Err, &te)
		synctest.Wait()
	})
}

package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestRDMAP_105_106_110_VERBS_63_CompletionsAreInPostOrder: across kinds. A Send after a Read is sent at once, and
// completes after it.
func TestRDMAP_105_106_110_VERBS_63_CompletionsAreInPostOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: []byte("s")},
			iwarp.SendWR{ID: 3, Op: iwarp.OpRDMAWrite, Inline: []byte("w"), Remote: remote},
			iwarp.SendWR{ID: 4, Op: iwarp.OpLocalInvalidate, Invalidate: k.mr2().STag()},
			iwarp.SendWR{ID: 5, Op: iwarp.OpRDMARead, Local: k.at(8, 4), Remote: remote})
		require.Equal(t, wiretest.ReadRequest(1, k.mr.STag(), 0, 4, remote.STag, remote.TO), k.p.Segment())
		require.Equal(t, wiretest.Send(1, 0, "s"), k.p.Segment(), "without a fence a Send does not wait for a Read")
		require.Equal(t, wiretest.Write(remote.STag, remote.TO, "w"), k.p.Segment())
		require.Equal(t, wiretest.ReadRequest(2, k.mr.STag(), 8, 4, remote.STag, remote.TO), k.p.Segment())
		k.wantNoCompletion("the Read at the head has no response")
		k.p.Send(wiretest.ReadResponse(0x81, k.mr.STag(), 0, "ab"))
		k.wantNoCompletion("only half of the response has come")
		k.p.Send(wiretest.ReadResponse(0xc1, k.mr.STag(), 2, "cd"))
		k.wantCompletions("now everything up to the next Read", 1, 2, 3, 4)
		k.wantNoCompletion("the second Read has no response")
		k.answersRead(8, "efgh")
		k.wantCompletions("and now that one", 5)
		require.Equal(t, "abcd\x00\x00\x00\x00efgh", string(k.mem[:12]))
		require.NoError(t, k.qp.Abort())
	})
}

// mr2 is a region that nothing else uses.
func (k *talk) mr2() *iwarp.MR {
	_, mr := k.register(8, stag.LocalWrite, nil)
	return mr
}

func TestVERBS_64_ReadFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 2), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: k.at(2, 2), Remote: remote},
			iwarp.SendWR{ID: 3, Op: iwarp.OpRDMAWrite, Flags: iwarp.ReadFence, Inline: []byte("w"), Remote: remote},
			iwarp.SendWR{ID: 4, Op: iwarp.OpSend})
		k.p.Segment()
		k.p.Segment()
		k.p.WantIdle("the fence holds back the Write and the Send after it", 1)
		k.answersRead(0, "ab")
		k.p.WantIdle("one Read is still out", 1)
		k.answersRead(2, "cd")
		require.Equal(t, wiretest.Write(remote.STag, remote.TO, "w"), k.p.Segment())
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		k.wantCompletions("all in order", 1, 2, 3, 4)

		k.posts(iwarp.SendWR{ID: 5, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
		require.Equal(t, wiretest.Send(2, 0, ""), k.p.Segment(), "a fence with nothing before it does not wait")
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_61_64_FenceBesideOtherFlags: no flag of a request takes the place of another, or of what its operation sets.
func TestVERBS_61_64_FenceBesideOtherFlags(t *testing.T) {
	const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00"
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, sink := k.register(4, stag.LocalWrite, nil)
		for i, c := range []struct {
			wr    iwarp.SendWR
			wants [][]byte
		}{
			{iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited}, [][]byte{wiretest.Untagged(0x41, 0x45, 0, 0, 1, 0, "in")}},
			{iwarp.SendWR{Op: iwarp.OpSendInvalidate, Flags: iwarp.Solicited, Invalidate: 7}, [][]byte{wiretest.Untagged(0x41, 0x46, 7, 0, 2, 0, "in")}},
			{iwarp.SendWR{Op: iwarp.OpRDMAWriteImm, Flags: iwarp.Solicited}, [][]byte{wiretest.Write(remote.STag, remote.TO, "in"), wiretest.Untagged(0x41, 0x49, 0, 0, 3, 0, zeros)}},
			{iwarp.SendWR{Op: iwarp.OpRDMAReadInvalidate, Local: []iwarp.SGE{sink.Slice(0, 4)}}, [][]byte{wiretest.ReadRequest(5, sink.STag(), 0, 4, remote.STag, remote.TO)}},
		} {
			c.wr.Flags |= iwarp.ReadFence | iwarp.Unsignaled
			c.wr.Remote = remote
			if len(c.wr.Local) == 0 {
				c.wr.Inline = []byte("in")
			}
			k.posts(iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote}, c.wr)
			k.p.Segment()
			k.p.WantIdle(c.wr.Op.String()+" waits for the Read", 1)
			k.answersRead(0, "data")
			for _, want := range c.wants {
				require.Equal(t, want, k.p.Segment(), "%v", c.wr.Op)
			}
			k.wantCompletions("the Read", uint64(i))
			k.wantNoCompletion("the other one is Unsignaled")
		}
		require.NoError(t, k.qp.Abort())
	})
}

func TestVERBS_65_LocalFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, sink := k.register(4, stag.LocalWrite, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{sink.Slice(0, 4)}, Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpLocalInvalidate, Flags: iwarp.LocalFence, Invalidate: sink.STag()},
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
		k.p.Segment()
		k.p.WantIdle("the Send waits behind the fence", 1)
		require.True(t, sink.Valid(), "the sink lives until its Read is complete")
		k.p.Send(wiretest.ReadResponse(0xc1, sink.STag(), 0, "data"))
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		require.False(t, sink.Valid())
		k.wantCompletions("all in order", 1, 2, 3)
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_114_130_SEC_27_OutstandingReadsAreBounded: the peer counts them.
func TestRDMAP_114_130_SEC_27_OutstandingReadsAreBounded(t *testing.T) {
	for _, ord := range []int{1, 3} {
		bubble(t, func(t *testing.T) {
			k := newTalk(t, iwarp.QPConfig{ORD: ord}, nil)
			require.Equal(t, ord, k.qp.ORD())
			_, responder := initiator(t, k.rnic, "pipe", &iwarp.QPConfig{PD: k.pd, ORD: ord})
			require.Equal(t, ord, responder.ORD(), "on either side")
			require.NoError(t, responder.Abort())
			const all = 8
			for i := range all {
				k.posts(iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRDMARead, Local: k.at(i, 1), Remote: remote})
			}
			k.posts(iwarp.SendWR{ID: all, Op: iwarp.OpSend})
			asked := 0
			for answered := range all {
				for ; asked < min(answered+ord, all); asked++ {
					require.Equal(t, wiretest.ReadRequest(uint32(asked+1), k.mr.STag(), uint64(asked), 1, remote.STag, remote.TO), k.p.Segment())
				}
				if asked < all {
					k.p.WantIdle("no more Reads than ORD; what is behind waits, too", 1)
				}
				k.answersRead(answered, "x")
				k.wantCompletions("a Read whose response came", uint64(answered))
			}
			require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
			k.wantCompletions("the Send in its turn", all)
			require.NoError(t, k.qp.Abort())
		})
	}
}

func TestVERBS_67_ReadWithoutORD(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{ORD: -1}, nil)
		require.Zero(t, k.qp.ORD())
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}, iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote}, iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		k.wantTerminate("the QP cannot do it: 0/0/00", 0x0000)
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusLocalOp, iwarp.StatusFlushed}, statuses(wcs))
		require.ErrorIs(t, wcs[1].Err(), iwarp.ErrUnsupported)
		require.ErrorIs(t, wcs[2].Err(), iwarp.ErrFlushed)
	})
}

// TestRDMAP_100_ARCH_29_ReceiveImpliesEarlierWrites: a received message implies what the peer did before.
func TestRDMAP_100_ARCH_29_ReceiveImpliesEarlierWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(64, 8)}, iwarp.RecvWR{ID: 2, Local: k.at(72, 8)}))
		k.p.Send(wiretest.Write(k.mr.STag(), 0, "one"))
		k.p.Send(wiretest.Send(1, 0, "first"))
		k.p.Send(wiretest.Write(k.mr.STag(), 8, "two"))
		k.p.Send(wiretest.Send(2, 0, "second"))
		k.wantCompletions("messages take receives in order", 1, 2)
		require.Equal(t, "one", string(k.mem[:3]))
		require.Equal(t, "two", string(k.mem[8:11]))
		require.Equal(t, "first\x00\x00\x00second", string(k.mem[64:78]))
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_57_CompletionOfAReceive: it reports length, event and invalidated STag.
func TestRDMAP_57_CompletionOfAReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, mr := k.register(8, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: k.qp})
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: k.at(0, 9)}, iwarp.RecvWR{ID: 2, Local: k.at(9, 9)}))
		k.p.Send(wiretest.Untagged(0x41, 0x45, 0, 0, 1, 0, "hello"))
		k.p.Send(wiretest.Untagged(0x41, 0x44, uint32(mr.STag()), 0, 2, 0, ""))
		wcs := k.completes(k.cq, 2)
		require.Equal(t, iwarp.WC{ID: 1, QP: k.qp, Op: iwarp.OpRecv, Flags: iwarp.Solicited, Len: 5}, wcs[0])
		require.Equal(t, iwarp.WC{ID: 2, QP: k.qp, Op: iwarp.OpRecv, STag: mr.STag()}, wcs[1])
		require.False(t, mr.Valid(), "the STag is dead when the completion tells of it")
		require.NoError(t, k.qp.Abort())
	})
}

// TestRDMAP_51_57_VERBS_77_SolicitedSendsOfOneRead: each message of one read has its own event.
func TestRDMAP_51_57_VERBS_77_SolicitedSendsOfOneRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2}, iwarp.RecvWR{ID: 3}))
		k.p.Send(
			wiretest.Untagged(0x41, 0x45, 0, 0, 1, 0, ""),
			wiretest.Untagged(0x41, 0x45, 0, 0, 2, 0, ""),
			wiretest.Untagged(0x41, 0x43, 0, 0, 3, 0, ""))
		var wcs [3]iwarp.WC
		n, err := k.cq.WaitSolicited(testContext(t), wcs[:])
		require.NoError(t, err)
		for n < len(wcs) { // what has come since
			wcs[n] = k.completes(k.cq, 1)[0]
			n++
		}
		for i, flags := range []iwarp.Flags{iwarp.Solicited, iwarp.Solicited, 0} {
			require.Equal(t, iwarp.WC{ID: uint64(i + 1), QP: k.qp, Op: iwarp.OpRecv, Flags: flags}, wcs[i])
		}
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_41_74_75_AttributionOfATerminate: the peer's Terminate names by its MSN the request that it concerns. That
// request gets the reason, all others are flushed.
func TestVERBS_41_74_75_AttributionOfATerminate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 8}, iwarp.RecvWR{ID: 9}))
		for id := range uint64(3) {
			k.posts(iwarp.SendWR{ID: id, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
		}
		var asked [3][]byte
		for i := range asked {
			asked[i] = k.p.Segment()
		}
		k.p.Send(wiretest.Terminate(0x0102, wiretest.ReadHeader, asked[1]))
		k.p.WantEOF("a Terminate is not answered by one")
		k.p.Close()
		<-k.qp.Done()
		wcs := k.completes(k.cq, 5)
		require.Equal(t, []uint64{0, 1, 2, 8, 9}, ids(wcs))
		require.Equal(t, []iwarp.Status{iwarp.StatusFlushed, iwarp.StatusRemoteAccess, iwarp.StatusFlushed, iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(wcs))
		require.EqualValues(t, 0x01020000, wcs[1].Vendor, "the first word of the Terminate")
		for _, wc := range wcs {
			var te *iwarp.TerminateError
			require.ErrorAs(t, wc.Err(), &te)
			require.True(t, te.Remote)
		}
		require.ErrorIs(t, wcs[1].Err(), iwarp.ErrAccess)
		te := k.qp.Terminated()
		require.Equal(t, iwarp.TerminateError{Layer: 0, Type: 1, Code: 2, Remote: true}, *te)
		e := <-k.rnic.Events()
		require.Equal(t, iwarp.EventTerminateReceived, e.Kind)
		require.Same(t, k.qp, e.QP)
		require.ErrorAs(t, e.Err, &te)
		synctest.Wait()
	})
}

// A gateBuffer blocks its writers until it is open.
type gateBuffer struct{ open chan struct{} }

func (gateBuffer) Size() int64                       { return 8 }
func (gateBuffer) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func (b gateBuffer) WriteAt(p []byte, _ int64) (int, error) {
	<-b.open
	return len(p), nil
}

// TestVERBS_63_HelperDoesNotOvertake: when a helper's receive is complete, so are those posted before it, although the
// same read has brought more, which is not placed yet.
func TestVERBS_63_HelperDoesNotOvertake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := connect(t, pairConfig{network: "pipe"})
		gate := gateBuffer{make(chan struct{})}
		slow, err := server.pd.RegisterBuffer(gate, stag.LocalWrite|stag.RemoteWrite, nil)
		require.NoError(t, err)
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		polled := make(chan int)
		go func() {
			_, err := server.qp.RecvWC(t.Context())
			n := 0
			if err == nil {
				n = server.qp.RecvCQ().Poll(make([]iwarp.WC, 2))
			}
			polled <- n
		}()
		synctest.Wait()
		require.NoError(t, client.qp.PostSend(
			iwarp.SendWR{Op: iwarp.OpImmediate}, iwarp.SendWR{Op: iwarp.OpSend},
			iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("late"), Remote: slow.Advertise(0, 8)}))
		require.Equal(t, 1, <-polled)
		require.Equal(t, 1, server.qp.CompleteWithHelper(), "nor does one of the send queue")
		close(gate.open)
		synctest.Wait()
		require.NoError(t, client.qp.Abort())
		require.NoError(t, server.qp.Abort())
	})
}

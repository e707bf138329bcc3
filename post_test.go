package iwarp_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

func TestVERBS_55_90_PostOfAListStopsAtTheFirstError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{SendDepth: 8, RecvDepth: 8}, nil)
		err := k.qp.PostSend(
			iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Inline: []byte("a")},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: []byte("b")},
			iwarp.SendWR{ID: 3, Op: iwarp.OpRecv},
			iwarp.SendWR{ID: 4, Op: iwarp.OpSend, Inline: []byte("d")})
		var post *iwarp.PostError
		require.ErrorAs(t, err, &post)
		require.Equal(t, 2, post.N, "two were queued")
		require.ErrorContains(t, err, "work request 2 refused")
		require.Equal(t, wiretest.Send(1, 0, "a"), k.p.Segment())
		require.Equal(t, wiretest.Send(2, 0, "b"), k.p.Segment())
		k.wantCompletions("those before the refused one are done", 1, 2)
		k.wantNoCompletion("the refused one and those after it changed nothing")

		err = k.qp.PostRecv(iwarp.RecvWR{ID: 5}, iwarp.RecvWR{ID: 6, Local: []iwarp.SGE{{Len: 1}}}, iwarp.RecvWR{ID: 7})
		require.ErrorAs(t, err, &post)
		require.Equal(t, 1, post.N)
		require.Equal(t, 1, k.qp.Posted())
		require.Equal(t, 1, k.qp.Stats().RecvQueued, "the others take no room")
		require.NoError(t, k.qp.PostSend())
		require.NoError(t, k.qp.PostRecv())
		require.NoError(t, k.qp.Abort())
	})
}

func TestVERBS_56_62_PostToAFullQueueIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{SendDepth: 3, RecvDepth: 3, ORD: 1}, nil)
		read := iwarp.SendWR{Op: iwarp.OpRDMARead}
		err := k.qp.PostSend(read, read, iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend})
		var post *iwarp.PostError
		require.ErrorAs(t, err, &post)
		require.Equal(t, 3, post.N)
		require.ErrorIs(t, err, iwarp.ErrQueueFull)
		require.ErrorContains(t, err, "3 send work requests")

		err = k.qp.PostRecv(make([]iwarp.RecvWR, 5)...)
		require.ErrorAs(t, err, &post)
		require.Equal(t, 3, post.N)
		require.ErrorIs(t, err, iwarp.ErrQueueFull)

		k.p.Segment()
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		k.wantCompletions("the oldest Read is done", 0)
		k.posts(iwarp.SendWR{Op: iwarp.OpSend})
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), iwarp.ErrQueueFull, "one completion makes room for one")
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_57_59_60_72_90_PostChecksEveryField: a refused work request says why, and changes nothing.
func TestVERBS_57_59_60_72_90_PostChecksEveryField(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{Limits: iwarp.Limits{MaxSGE: 4, MaxInline: 64}})
		other := newSide(t, nil)
		_, foreign := other.register(8, stag.LocalWrite, nil)
		pd2, err := k.rnic.AllocPD()
		require.NoError(t, err)
		otherPD, err := pd2.RegisterMR(make([]byte, 8), stag.LocalWrite, nil)
		require.NoError(t, err)
		_, qp2 := responder(t, k.rnic, "pipe", &iwarp.QPConfig{PD: k.pd})
		_, otherQP := k.register(8, stag.LocalWrite, &iwarp.MROptions{QP: qp2})
		_, readOnly := k.register(8, 0, nil)
		_, dead := k.register(8, stag.LocalWrite, nil)
		require.NoError(t, dead.Invalidate(testContext(t)))
		huge, err := k.pd.RegisterBuffer(vast{}, stag.LocalWrite, nil)
		require.NoError(t, err)
		many := make([]iwarp.SGE, 5)
		for i := range many {
			many[i] = k.mr.Slice(i, 1)
		}

		sges := []struct {
			why  string
			sge  []iwarp.SGE
			is   error
			says string
		}{
			{"no region", []iwarp.SGE{{Len: 1}}, nil, "no region"},
			{"negative offset", k.at(-1, 1), iwarp.ErrBounds, "1 octets at -1 of 4096"},
			{"negative length", k.at(0, -1), iwarp.ErrBounds, "-1 octets at 0"},
			{"one octet past the end", k.at(1, talkMem), iwarp.ErrBounds, "4096"},
			{"offset past the end", k.at(talkMem+1, 1), iwarp.ErrBounds, "1 octets at 4097"},
			{"overflow", k.at(math.MaxInt, math.MaxInt), iwarp.ErrBounds, ""},
			{"another RNIC", []iwarp.SGE{foreign.Slice(0, 1)}, iwarp.ErrAccess, "another PD"},
			{"another PD", []iwarp.SGE{otherPD.Slice(0, 1)}, iwarp.ErrAccess, "another PD"},
			{"another QP", []iwarp.SGE{otherQP.Slice(0, 1)}, iwarp.ErrAccess, "another QP"},
			{"invalidated", []iwarp.SGE{dead.Slice(0, 1)}, iwarp.ErrInvalidSTag, "invalidated"},
			{"the second is bad", []iwarp.SGE{k.mr.Slice(0, 1), k.mr.Slice(-1, 1)}, iwarp.ErrBounds, "SGE 1"},
			{"too many", many, iwarp.ErrLimit, "5 SGEs, at most 4"},
			{"too long in sum", []iwarp.SGE{huge.Slice(0, math.MaxInt32), huge.Slice(0, math.MaxInt32), huge.Slice(0, 2)}, iwarp.ErrLimit, "4294967296"},
		}
		for _, c := range sges {
			for _, op := range []iwarp.Op{iwarp.OpSend, iwarp.OpRDMAWrite} {
				k.refused(c.why, iwarp.SendWR{Op: op, Local: c.sge, Remote: iwarp.RemoteBuffer{Len: math.MaxUint32}}, c.is, c.says)
			}
			err := k.qp.PostRecv(iwarp.RecvWR{Local: c.sge})
			require.ErrorContains(t, err, c.says, c.why)
			if len(c.sge) == 1 {
				k.refused(c.why, iwarp.SendWR{Op: iwarp.OpRDMARead, Local: c.sge, Remote: iwarp.RemoteBuffer{Len: math.MaxUint32}}, c.is, c.says)
			}
		}

		for _, c := range []struct {
			why  string
			wr   iwarp.SendWR
			is   error
			says string
		}{
			{"no Op", iwarp.SendWR{}, nil, "Op(0)"},
			{"not a send queue's", iwarp.SendWR{Op: iwarp.OpRecv}, nil, "Receive cannot be posted"},
			{"unknown Op", iwarp.SendWR{Op: 200}, nil, "Op(200)"},
			{"unknown flag", iwarp.SendWR{Op: iwarp.OpSend, Flags: 0x80}, nil, "unknown Flags 0x80"},
			{"Solicited Write", iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Solicited}, nil, "cannot be Solicited"},
			{"Solicited Read", iwarp.SendWR{Op: iwarp.OpRDMARead, Flags: iwarp.Solicited}, nil, "cannot be Solicited"},
			{"Solicited Local Invalidate", iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Flags: iwarp.Solicited}, nil, "cannot be Solicited"},
			{"Local and Inline", iwarp.SendWR{Op: iwarp.OpSend, Local: k.at(0, 1), Inline: []byte{1}}, nil, "not both"},
			{"too much inline", iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, 65)}, iwarp.ErrLimit, "65 octets inline, at most 64"},
			{"Read with Inline", iwarp.SendWR{Op: iwarp.OpRDMARead, Inline: []byte{1}, Remote: remote}, nil, "no inline"},
			{"Read into no SGE", iwarp.SendWR{Op: iwarp.OpRDMARead, Remote: remote}, nil, "exactly one SGE, not 0"},
			{"Read into two SGEs", iwarp.SendWR{Op: iwarp.OpRDMARead, Local: many[:2], Remote: remote}, nil, "exactly one SGE, not 2"},
			{"Read without a right", iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{readOnly.Slice(0, 1)}, Remote: remote}, iwarp.ErrAccess, "LocalWrite"},
			{"Read past the RemoteBuffer", iwarp.SendWR{Op: iwarp.OpRDMARead, Local: k.at(0, 9), Remote: iwarp.RemoteBuffer{Len: 8}}, iwarp.ErrBounds, "9 octets, the RemoteBuffer has 8"},
			{"Write past the RemoteBuffer", iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: k.at(0, 9), Remote: iwarp.RemoteBuffer{Len: 8}}, iwarp.ErrBounds, "9 octets, the RemoteBuffer has 8"},
		} {
			k.refused(c.why, c.wr, c.is, c.says)
		}
		require.ErrorIs(t, k.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{readOnly.Slice(0, 1)}}), iwarp.ErrAccess, "a receive needs LocalWrite")
		k.p.WantIdle("nothing of all this was sent", time.Second)
		require.Zero(t, k.qp.Posted())
		require.NoError(t, k.qp.Abort())
		require.NoError(t, qp2.Abort())
	})
}

// refused posts wr, which must be refused with an error that says why.
func (k *talk) refused(why string, wr iwarp.SendWR, is error, says string) {
	k.Helper()
	err := k.qp.PostSend(wr)
	var post *iwarp.PostError
	require.ErrorAs(k, err, &post, why)
	require.Zero(k, post.N, why)
	require.ErrorContains(k, err, says, why)
	if is != nil {
		require.ErrorIs(k, err, is, why)
	}
	require.NotErrorIs(k, err, iwarp.ErrFlushed, why)
}

// vast pretends to have more octets than a message can.
type vast struct{}

func (vast) ReadAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (vast) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (vast) Size() int64                            { return 1 << 33 }

func TestVERBS_35_IdleQPCannotBeEnded(t *testing.T) {
	s := newSide(t, nil)
	qp, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd, IRD: 3, ORD: -1})
	require.NoError(t, err)
	require.NoError(t, qp.PostRecv(iwarp.RecvWR{ID: 1}), "a receive can be posted from the start")
	require.Equal(t, iwarp.StateIdle, qp.State())
	for _, ends := range []func() error{qp.Close, qp.Terminate, qp.Abort} {
		require.ErrorContains(t, ends(), "not connected yet")
		require.Equal(t, iwarp.StateIdle, qp.State())
	}
	require.Equal(t, []int{3, 0}, []int{qp.IRD(), qp.ORD()}, "what is asked for")
	require.Nil(t, qp.PrivateData())
	require.Nil(t, qp.RemoteAddr())
	require.Nil(t, qp.LocalAddr())
	require.Zero(t, qp.Stats())
	cause := errors.New("no road")
	qp.Abandon(cause)
	var wc [1]iwarp.WC
	require.Equal(t, 1, qp.RecvCQ().Poll(wc[:]), "when set-up fails what was posted is flushed")
	require.Equal(t, iwarp.StatusFlushed, wc[0].Status)
	require.ErrorIs(t, wc[0].Err(), cause)
}

func TestVERBS_60_PostedInlineDataIsCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{ORD: 1}, nil)
		buf := []byte("before")
		k.posts(
			iwarp.SendWR{Op: iwarp.OpRDMARead},
			iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.ReadFence, Inline: buf},
			iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: buf, Remote: remote})
		copy(buf, "after!") // both are still in the queue
		k.p.Segment()
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		require.Equal(t, wiretest.Send(1, 0, "before"), k.p.Segment())
		require.Equal(t, wiretest.Write(remote.STag, remote.TO, "before"), k.p.Segment())
		require.NoError(t, k.qp.Abort())
	})
}

func TestVERBS_61_62_UnsignaledWorkCompletesOnlyIfItFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{SendDepth: 4}, nil)
		for range 5 { // also: their slots come back
			k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Flags: iwarp.Unsignaled}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.Unsignaled}, iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
			k.wantCompletions("only the signaled one tells", 3)
		}
		for range 15 {
			k.p.Segment()
		}
		k.posts(
			iwarp.SendWR{ID: 4, Op: iwarp.OpSend, Flags: iwarp.Unsignaled},
			iwarp.SendWR{ID: 5, Op: iwarp.OpLocalInvalidate, Invalidate: 0x77, Flags: iwarp.Unsignaled},
			iwarp.SendWR{ID: 6, Op: iwarp.OpSend, Flags: iwarp.Unsignaled},
			iwarp.SendWR{ID: 7, Op: iwarp.OpSend})
		k.wantTerminate("an invalidate of nothing is a local error: 0/0/00", 0x0000)
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []uint64{5, 6, 7}, ids(wcs), "the one that fails, and all after it")
		require.Equal(t, []iwarp.Status{iwarp.StatusBind, iwarp.StatusFlushed, iwarp.StatusFlushed}, statuses(wcs))
	})
}

func TestVERBS_72_SolicitedAndInvalidatingSends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(
			iwarp.SendWR{Op: iwarp.OpSend},
			iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited},
			iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: 0x01020304},
			iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: 0x01020304, Flags: iwarp.Solicited})
		k.p.WantSegment("Send", "41 43 00000000 00000000 00000001 00000000")
		k.p.WantSegment("Send with Solicited Event", "41 45 00000000 00000000 00000002 00000000")
		k.p.WantSegment("Send with Invalidate", "41 44 01020304 00000000 00000003 00000000")
		k.p.WantSegment("Send with both", "41 46 01020304 00000000 00000004 00000000")
		k.completes(k.cq, 4)

		_, mr := k.register(8, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: k.qp})
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 5}))
		k.p.Send(wiretest.Untagged(0x41, 0x46, uint32(mr.STag()), 0, 1, 0, ""))
		require.Equal(t, iwarp.WC{ID: 5, QP: k.qp, Op: iwarp.OpRecv, Flags: iwarp.Solicited, STag: mr.STag()}, k.completes(k.cq, 1)[0], "both in one message of the peer")
		require.NoError(t, k.qp.Abort())
	})
}

func TestVERBS_57_58_GatherAndScatter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{Limits: iwarp.Limits{MaxSGE: 5}})
		copy(k.mem, "0123456789")
		gather := []iwarp.SGE{k.mr.Slice(7, 3), {MR: nil, Len: 0}, k.mr.Slice(-9, 0), k.mr.Slice(0, 1), k.mr.Slice(2, 2)}
		k.posts(iwarp.SendWR{Op: iwarp.OpSend, Local: gather}, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: gather, Remote: remote})
		require.Equal(t, wiretest.Send(1, 0, "789023"), k.p.Segment(), "SGEs of no length are not looked at")
		require.Equal(t, wiretest.Write(remote.STag, remote.TO, "789023"), k.p.Segment())
		k.completes(k.cq, 2)
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: append(gather, iwarp.SGE{})}), iwarp.ErrLimit, "but they count")

		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{k.mr.Slice(100, 2), k.mr.Slice(200, 0), k.mr.Slice(300, 1), k.mr.Slice(400, 10)}}))
		k.p.Send(wiretest.Send(1, 0, "abcdefg"))
		wcs := k.completes(k.cq, 1)
		require.EqualValues(t, 7, wcs[0].Len)
		require.Equal(t, "ab", string(k.mem[100:102]))
		require.Equal(t, "c", string(k.mem[300:301]))
		require.Equal(t, "defg", string(bytes.TrimRight(k.mem[400:410], "\x00")))
		require.Zero(t, k.mem[200])
		require.NoError(t, k.qp.Abort())
	})
}

// TestLongestMessage: it has 2^32-1 octets, in any number of SGEs.
func TestLongestMessage(t *testing.T) {
	s := newSide(t, nil)
	mr, err := s.pd.RegisterBuffer(&vastBuffer{size: 1 << 30}, stag.LocalWrite, nil)
	require.NoError(t, err)
	qp, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd})
	require.NoError(t, err)
	gib := mr.Slice(0, 1<<30)
	require.NoError(t, qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{gib, gib, gib, mr.Slice(0, 1<<30-1)}}))
	require.ErrorIs(t, qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{gib, gib, gib, gib}}), iwarp.ErrLimit)
}

func TestVERBS_58_OperationsOfNoLength(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		anything := iwarp.RemoteBuffer{STag: 0x01020304, TO: math.MaxUint64}
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Inline: []byte{}},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMAWrite, Remote: anything},
			iwarp.SendWR{ID: 3, Op: iwarp.OpRDMARead, Remote: anything},
			iwarp.SendWR{ID: 4, Op: iwarp.OpRDMARead, Local: k.at(8, 0), Remote: anything})
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		require.Equal(t, wiretest.Write(0x01020304, math.MaxUint64, ""), k.p.Segment())
		for msn := range uint32(2) {
			require.Equal(t, wiretest.ReadRequest(msn+1, 0, 0, 0, 0x01020304, math.MaxUint64), k.p.Segment())
			k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		}
		k.wantCompletions("all of them complete", 1, 2, 3, 4)
		require.NoError(t, k.qp.Abort())
	})
}

func TestVERBS_20_ReadIntoARegionThatIsInvalidatedAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, sink := k.register(8, stag.LocalWrite, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMAReadInvalidate, Local: []iwarp.SGE{sink.Slice(0, 4)}, Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
		require.Equal(t, wiretest.ReadRequest(1, sink.STag(), 0, 4, remote.STag, remote.TO), k.p.Segment())
		k.wantNoCompletion("the response has not come")
		require.True(t, sink.Valid())
		k.p.Send(wiretest.ReadResponse(0xc1, sink.STag(), 0, "data"))
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment())
		k.wantCompletions("the Read, then what it has held back", 1, 2)
		require.False(t, sink.Valid(), "when the Read completes its sink is dead")
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{sink.Slice(0, 1)}}), iwarp.ErrInvalidSTag)
		require.NoError(t, k.qp.Abort())
	})
}

func TestPostErrorsAreErrors(t *testing.T) {
	err := error(&iwarp.PostError{N: 3, Err: iwarp.ErrQueueFull})
	require.ErrorIs(t, err, iwarp.ErrQueueFull)
	require.True(t, strings.HasPrefix(err.Error(), "iwarp: work request 3"))
}

func TestLocalInvalidateTakesAwayTheAccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{ORD: 4}, nil)
		// Posted together: the Send after the invalidate still names the region, because it was checked when it was
		// posted, but it fails in its turn.
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Local: k.at(0, 2)},
			iwarp.SendWR{ID: 2, Op: iwarp.OpLocalInvalidate, Invalidate: k.mr.STag()},
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Local: k.at(0, 1)})
		require.Equal(t, wiretest.Send(1, 0, "\x00\x00"), k.p.Segment(), "what was before goes out")
		k.wantTerminate("a source that is gone is a local error: 0/0/00", 0x0000)
		wcs := k.completes(k.cq, 3)
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusSuccess, iwarp.StatusLocalProtection}, statuses(wcs))
		require.ErrorIs(t, wcs[2].Err(), iwarp.ErrInvalidSTag)

		k = newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpLocalInvalidate, Invalidate: k.mr.STag()})
		k.wantCompletions("invalidated", 1)
		k.p.Send(wiretest.Write(k.mr.STag(), 0, "x"))
		k.wantTerminate("the peer finds no STag: 1/1/00", 0x1100)
		require.Zero(t, k.mem[0])
	})
}

func TestVERBS_52_RegionRevokedWhileItsWorkWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, mr := k.register(8, stag.LocalWrite, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence, Local: []iwarp.SGE{mr.Slice(0, 8)}})
		k.p.Segment()
		require.NoError(t, mr.Invalidate(testContext(t)), "it does not wait for work")
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		k.wantTerminate("its source is gone", 0x0000)
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusLocalProtection}, statuses(k.completes(k.cq, 2)))
		synctest.Wait()
	})
}

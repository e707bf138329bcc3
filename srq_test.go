package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// A shop is QPs that receive from one SRQ; the test plays their peers. The memory of
// receive i is slot i, of 8 octets.
type shop struct {
	*side
	srq *iwarp.SRQ
	mem []byte
	mr  *iwarp.MR
}

func newShop(t *testing.T, depth int, cfg *iwarp.Config) *shop {
	s := &shop{side: newSide(t, cfg)}
	s.mem, s.mr = s.register(256, stag.LocalWrite, nil)
	var err error
	s.srq, err = s.pd.CreateSRQ(depth)
	require.NoError(t, err)
	return s
}

// posts posts the receives of ids.
func (s *shop) posts(ids ...uint64) {
	s.Helper()
	for _, id := range ids {
		require.NoError(s, s.srq.PostRecv(iwarp.RecvWR{ID: id, Local: []iwarp.SGE{s.mr.Slice(int(id)*8, 8)}}))
	}
}

// slot returns the contents of receive id.
func (s *shop) slot(id int) string { return string(bytes.TrimRight(s.mem[id*8:id*8+8], "\x00")) }

// opens adds a QP and its peer.
func (s *shop) opens(qc iwarp.QPConfig) (*wiretest.Peer, *side) {
	s.Helper()
	if qc.PD == nil {
		qc.PD = s.pd
	}
	qc.SRQ = s.srq
	p, qp := initiator(s.T, s.rnic, "pipe", &qc)
	return p, &side{T: s.T, rnic: s.rnic, pd: qc.PD, qp: qp}
}

// receives waits for the receive id of a QP with a message of n octets.
func (s *side) receives(id uint64, n int) {
	s.Helper()
	wc := s.completes(s.qp.RecvCQ(), 1)[0]
	require.Equal(s, iwarp.WC{ID: id, QP: s.qp, Op: iwarp.OpRecv, Len: uint32(n)}, wc)
}

// wantNothing requires that a QP completes nothing by itself.
func (s *side) wantNothing(expectation string) {
	s.Helper()
	synctest.Wait()
	require.Zero(s, s.qp.RecvCQ().Poll(make([]iwarp.WC, 1)), expectation)
}

// more makes a segment not the last of its message.
func more(segment []byte) []byte {
	segment[0] &^= 0x40
	return segment
}

// TestClosedSRQHasTaken: it counts receives that messages took, and not those that Close has dropped.
func TestClosedSRQHasTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(1, 2, 3)
		p, a := s.opens(iwarp.QPConfig{})
		p.Send(wiretest.Send(1, 0, "a1"))
		a.receives(1, 2)
		require.NoError(t, a.qp.Abort())
		<-a.qp.Done()
		require.NoError(t, s.srq.Close())
		require.Equal(t, iwarp.SRQStats{Posted: 3, Taken: 1, Depth: 8}, s.srq.Stats())
	})
}

// TestVERBS_81_ARCH_9_10_FirstMessageTakesTheOldestReceive: a receive serves whichever peer comes first. It completes on
// that QP's CQ, in the order of that peer's messages. A message takes it with its first segment.
func TestVERBS_81_ARCH_9_10_FirstMessageTakesTheOldestReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(1, 2, 3, 4, 5)
		pa, a := s.opens(iwarp.QPConfig{})
		pb, b := s.opens(iwarp.QPConfig{})
		pa.Send(more(wiretest.Send(1, 0, "aa")))
		synctest.Wait()
		require.Equal(t, iwarp.SRQStats{Posted: 5, Taken: 1, Free: 4, Depth: 8}, s.srq.Stats())
		pb.Send(wiretest.Send(1, 0, "b1"))
		b.receives(2, 2)
		pb.Send(wiretest.Send(2, 0, "b2"))
		b.receives(3, 2)
		a.wantNothing("its message is not whole")
		pa.Send(wiretest.Send(1, 2, "AA"))
		a.receives(1, 4)
		require.Equal(t, 2, s.srq.Stats().Free, "a message takes one, and not one for each segment")
		pa.Write(append(wiretest.FPDU(wiretest.Send(2, 0, "a2")), wiretest.FPDU(wiretest.Send(3, 0, ""))...))
		a.receives(4, 2)
		a.receives(5, 0)
		require.Equal(t, []string{"aaAA", "b1", "b2", "a2", ""}, []string{s.slot(1), s.slot(2), s.slot(3), s.slot(4), s.slot(5)})
		require.Zero(t, s.srq.Stats().Free, "each receive was taken once")
		b.wantNothing("and by no other QP")
	})
}

// TestVERBS_82_QPWithAnSRQTakesNoReceives: it has no receives of its own.
func TestVERBS_82_QPWithAnSRQTakesNoReceives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		_, a := s.opens(iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
			require.ErrorIs(t, qp.PostRecv(iwarp.RecvWR{}), iwarp.ErrHasSRQ, "while Idle")
			return nil
		}})
		require.ErrorIs(t, a.qp.PostRecv(iwarp.RecvWR{}), iwarp.ErrHasSRQ)
		_, err := a.qp.Recv(testContext(t), iwarp.SGE{})
		require.ErrorIs(t, err, iwarp.ErrHasSRQ)
		require.NoError(t, a.qp.Abort())
		a.wantNothing("and nothing was queued")
	})
}

// TestVERBS_83_SharedReceivesAreCheckedAgainstThePDOfTheSRQ: the QP's peers cannot reach that PD.
func TestVERBS_83_SharedReceivesAreCheckedAgainstThePDOfTheSRQ(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		pd, err := s.rnic.AllocPD()
		require.NoError(t, err)
		p, a := s.opens(iwarp.QPConfig{PD: pd})
		_, foreign := a.register(8, stag.LocalWrite, nil)
		_, readOnly := s.register(8, 0, nil)
		_, open := s.register(8, stag.LocalWrite|stag.RemoteWrite, nil)
		other, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd})
		require.NoError(t, err)
		_, bound := s.register(8, stag.LocalWrite, &iwarp.MROptions{QP: other})
		for what, mr := range map[string]*iwarp.MR{"a region of the QP's PD": foreign, "one that lacks LocalWrite": readOnly, "one of a single QP": bound} {
			err := s.srq.PostRecv(iwarp.RecvWR{ID: 9}, iwarp.RecvWR{Local: []iwarp.SGE{mr.Slice(0, 8)}})
			var post *iwarp.PostError
			require.ErrorAs(t, err, &post, what)
			require.Equal(t, 1, post.N, "what is before it is queued")
			require.ErrorIs(t, err, iwarp.ErrAccess, what)
			p.Send(wiretest.Send(uint32(s.srq.Stats().Taken+1), 0, ""))
			a.receives(9, 0)
		}
		s.posts(1)
		p.Send(wiretest.Send(4, 0, "hi"))
		a.receives(1, 2)
		require.Equal(t, "hi", s.slot(1))

		p.Send(wiretest.Write(open.STag(), 0, "no"))
		require.Equal(t, []byte{0x11, 0x02}, p.Segment()[18:20], "the PD of the SRQ is none of the peer's business")
	})
}

// TestVERBS_84_FailedQPLeavesTheOthersTheirReceives: only the receive that its message has taken is lost.
func TestVERBS_84_FailedQPLeavesTheOthersTheirReceives(t *testing.T) {
	for name, fails := range map[string]func(p *wiretest.Peer, qp *iwarp.QP){
		"it is aborted": func(_ *wiretest.Peer, qp *iwarp.QP) { require.NoError(t, qp.Abort()) },
		"its peer breaks a rule": func(p *wiretest.Peer, _ *iwarp.QP) {
			p.Send(wiretest.Write(0x99, 0, "x"))
			p.Segment()
			_ = p.Conn.Close()
		},
		"its peer ends gracefully": func(p *wiretest.Peer, _ *iwarp.QP) { _ = p.Conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newShop(t, 8, nil)
				s.posts(1, 2, 3)
				pa, a := s.opens(iwarp.QPConfig{})
				pb, b := s.opens(iwarp.QPConfig{})
				pa.Send(more(wiretest.Send(1, 0, "half")))
				synctest.Wait()
				fails(pa, a.qp)
				<-a.qp.Done()
				wcs := a.completes(a.qp.RecvCQ(), 1)
				require.Equal(t, []uint64{1}, ids(wcs))
				require.Equal(t, iwarp.StatusFlushed, wcs[0].Status)
				a.wantNothing("the receives that it had not taken are not its own")
				require.Equal(t, 2, s.srq.Stats().Free)
				pb.Send(wiretest.Send(1, 0, "b"))
				b.receives(2, 1)
				require.Equal(t, iwarp.StateRTS, b.qp.State())
			})
		})
	}
}

// TestVERBS_71_MessageTooLongForASharedReceive: the message ends its QP, and the receive reports it.
func TestVERBS_71_MessageTooLongForASharedReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(1, 2)
		p, a := s.opens(iwarp.QPConfig{})
		p.Send(wiretest.Send(1, 0, "too long by one"[:9]))
		require.Equal(t, []byte{0x12, 0x05}, p.Segment()[18:20])
		p.Close()
		<-a.qp.Done()
		wcs := a.completes(a.qp.RecvCQ(), 1)
		require.Equal(t, []uint64{1}, ids(wcs))
		require.Equal(t, iwarp.StatusLocalLength, wcs[0].Status)
		require.Equal(t, 1, s.srq.Stats().Free)
	})
}

// wantEvents requires the pending events to be of these kinds.
func (s *side) wantEvents(expectation string, kinds ...iwarp.EventKind) (last iwarp.Event) {
	s.Helper()
	synctest.Wait()
	var got []iwarp.EventKind
	for len(s.rnic.Events()) > 0 {
		last = <-s.rnic.Events()
		got = append(got, last.Kind)
	}
	require.Equal(s, kinds, got, expectation)
	return last
}

// TestVERBS_85_SEC_20_SRQLimit: once for each arming.
func TestVERBS_85_SEC_20_SRQLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(1, 2, 3, 4, 5, 6)
		p, a := s.opens(iwarp.QPConfig{})
		msn := uint32(0)
		takes := func() {
			msn++
			p.Send(wiretest.Send(msn, 0, ""))
			a.receives(uint64(msn), 0)
		}
		takes()
		s.wantEvents("no limit is set")
		require.Error(t, s.srq.SetLimit(9), "more than it can hold")
		require.Error(t, s.srq.SetLimit(-1))
		require.NoError(t, s.srq.SetLimit(8))
		s.wantEvents("as many as it can hold", iwarp.EventSRQLimit)
		require.NoError(t, s.srq.SetLimit(4))
		takes()
		s.wantEvents("four are left: not fewer")
		takes()
		require.Same(t, s.srq, s.wantEvents("three are left", iwarp.EventSRQLimit).SRQ)
		takes()
		s.wantEvents("it is told once")
		require.NoError(t, s.srq.SetLimit(3))
		s.wantEvents("two are left already", iwarp.EventSRQLimit)
		require.NoError(t, s.srq.SetLimit(2))
		require.NoError(t, s.srq.SetLimit(0))
		takes()
		s.wantEvents("it was disarmed")
	})
}

// TestVERBS_86_88_SEC_19_21_ReceivesHeldByOnePeer: they are counted, and reported when they exceed a limit, once for
// each arming.
func TestVERBS_86_88_SEC_19_21_ReceivesHeldByOnePeer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(1, 2, 3, 4, 5, 6)
		p, a := s.opens(iwarp.QPConfig{RecvDepth: 5})
		_, b := s.opens(iwarp.QPConfig{})
		require.Error(t, a.qp.SetRecvLimit(6), "it can never hold so many")
		require.Error(t, a.qp.SetRecvLimit(-1))
		require.NoError(t, a.qp.SetRecvLimit(5))
		require.NoError(t, a.qp.SetRecvLimit(2))
		p.Send(wiretest.Send(1, 0, ""))
		p.Send(wiretest.Send(2, 0, ""))
		s.wantEvents("two are not more than two")
		p.Send(more(wiretest.Send(3, 0, "x")))
		require.Same(t, a.qp, s.wantEvents("a message that has begun counts", iwarp.EventRecvLimit).QP)
		stats := a.qp.Stats()
		require.Equal(t, []int{3, 3}, []int{int(stats.SharedTaken), stats.SharedHeld})
		p.Send(wiretest.Send(3, 1, "y"))
		p.Send(wiretest.Send(4, 0, ""))
		s.wantEvents("it is told once")
		a.completes(a.qp.RecvCQ(), 3)
		stats = a.qp.Stats()
		require.Equal(t, []int{4, 1}, []int{int(stats.SharedTaken), stats.SharedHeld}, "what was polled is not held")
		require.NoError(t, a.qp.SetRecvLimit(1))
		p.Send(wiretest.Send(5, 0, ""))
		s.wantEvents("two are more than one", iwarp.EventRecvLimit)
		require.NoError(t, a.qp.SetRecvLimit(1))
		s.wantEvents("they are so already", iwarp.EventRecvLimit)
		require.NoError(t, a.qp.SetRecvLimit(0))
		p.Send(wiretest.Send(6, 0, ""))
		s.wantEvents("it was disarmed")
		require.Zero(t, b.qp.Stats().SharedTaken, "a QP that has taken no receive is charged none")
	})
	k := newSide(t, nil)
	qp, err := k.rnic.NewQP(&iwarp.QPConfig{PD: k.pd})
	require.NoError(t, err)
	require.ErrorIs(t, qp.SetRecvLimit(1), iwarp.ErrHasNoSRQ)
}

// TestRDMAP_133_VERBS_88_ARCH_12_SEC_19_OnePeerCannotTakeAllReceives: a peer that sends faster than the application
// polls waits at its cap, while the others find receives.
func TestRDMAP_133_VERBS_88_ARCH_12_SEC_19_OnePeerCannotTakeAllReceives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 16, nil)
		s.posts(1, 2, 3, 4, 5, 6, 7, 8)
		greedy, g := s.opens(iwarp.QPConfig{RecvDepth: 2})
		modest, m := s.opens(iwarp.QPConfig{RecvDepth: 2})
		for msn := range uint32(5) {
			greedy.Send(wiretest.Send(msn+1, 0, ""))
		}
		synctest.Wait()
		require.Equal(t, 2, g.qp.Stats().SharedHeld)
		require.Equal(t, 6, s.srq.Stats().Free)
		modest.Send(wiretest.Send(1, 0, ""))
		m.receives(3, 0)
		g.receives(1, 0)
		synctest.Wait()
		require.Equal(t, 2, g.qp.Stats().SharedHeld, "what is polled makes room for as much")
		g.receives(2, 0)
		g.receives(4, 0)
		g.receives(5, 0)
		g.receives(6, 0)

		for msn := range uint32(3) {
			greedy.Send(wiretest.Send(msn+6, 0, ""))
		}
		time.Sleep(iwarp.DefaultRNRWait - wiretest.Patience/2)
		require.Equal(t, []byte{0x12, 0x02}, greedy.Segment()[18:20], "a QP whose message finds no receive within RNRWait ends")
		modest.Send(wiretest.Send(2, 0, ""))
		synctest.Wait()
		greedy.Close()
		<-g.qp.Done()
		require.Equal(t, 0, s.srq.Stats().Free)
		require.Equal(t, iwarp.StateRTS, m.qp.State(), "alone")
	})
}

// TestVERBS_87_SRQIsClosedAfterItsQPs: receives still posted then are dropped without a completion.
func TestVERBS_87_SRQIsClosedAfterItsQPs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, &iwarp.Config{Limits: iwarp.Limits{MaxSRQ: 1}})
		s.posts(1, 2)
		_, a := s.opens(iwarp.QPConfig{})
		_, b := s.opens(iwarp.QPConfig{})
		require.ErrorContains(t, s.srq.Close(), "2 queue pairs")
		require.EqualError(t, s.pd.Close(), "iwarp: close PD: still in use by 1 regions, 1 shared receive queues, 2 queue pairs")
		require.NoError(t, a.qp.Abort())
		require.ErrorContains(t, s.srq.Close(), "1 queue pairs")
		s.posts(3)
		require.NoError(t, b.qp.Abort())
		require.NoError(t, s.mr.Close())
		require.EqualError(t, s.pd.Close(), "iwarp: close PD: still in use by 1 shared receive queues")
		_, err := s.pd.CreateSRQ(1)
		require.ErrorIs(t, err, iwarp.ErrLimit)
		require.NoError(t, s.srq.Close())
		require.NoError(t, s.srq.Close(), "closing again does nothing")
		a.wantNothing("dropped")
		b.wantNothing("dropped")
		require.ErrorIs(t, s.srq.PostRecv(iwarp.RecvWR{}), net.ErrClosed)
		require.ErrorIs(t, s.srq.SetLimit(1), net.ErrClosed)
		_, err = s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd, SRQ: s.srq})
		require.ErrorIs(t, err, net.ErrClosed)
		require.Zero(t, s.rnic.InUse().MaxQP)
		again, err := s.pd.CreateSRQ(1)
		require.NoError(t, err, "a closed one counts no more")
		require.NoError(t, again.Close())
		require.NoError(t, s.pd.Close(), "what a refused QP took was given back")
		_, err = s.pd.CreateSRQ(1)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Zero(t, s.rnic.InUse().MaxSRQ)
	})
}

func TestSRQDepthIsLimited(t *testing.T) {
	s := newShop(t, 3, &iwarp.Config{Limits: iwarp.Limits{MaxQueueDepth: 3}})
	for _, depth := range []int{0, -1, 4} {
		_, err := s.pd.CreateSRQ(depth)
		require.Error(t, err, depth)
	}
	var post *iwarp.PostError
	require.ErrorAs(t, s.srq.PostRecv(make([]iwarp.RecvWR, 5)...), &post)
	require.Equal(t, 3, post.N)
	require.ErrorIs(t, post, iwarp.ErrQueueFull)
	require.Equal(t, iwarp.SRQStats{Posted: 3, Free: 3, Depth: 3}, s.srq.Stats())
	other := newSide(t, nil)
	_, err := other.rnic.NewQP(&iwarp.QPConfig{PD: other.pd, SRQ: s.srq})
	require.ErrorContains(t, err, "another RNIC")
}

// TestEventOfAMessageThatWaitsForASharedReceive: the error says whether the SRQ is empty, or the QP holds as many
// receives as it may.
func TestEventOfAMessageThatWaitsForASharedReceive(t *testing.T) {
	for posted, held := range map[int]bool{2: false, 4: true} { // the QP may hold three
		bubble(t, func(t *testing.T) {
			s := newShop(t, 8, nil)
			s.posts(slices.Repeat([]uint64{1}, posted)...)
			p, k := s.opens(iwarp.QPConfig{RecvDepth: 3})
			for msn := range uint32(4) {
				p.Send(wiretest.Send(msn+1, 0, ""))
			}
			time.Sleep(iwarp.NoticeAfter)
			e := <-s.rnic.Events()
			require.Equal(t, []any{iwarp.EventNoReceive, k.qp}, []any{e.Kind, e.QP})
			require.ErrorIs(t, e.Err, iwarp.ErrNoReceive)
			require.Equal(t, held, strings.Contains(e.Err.Error(), "QPConfig.RecvDepth"), "%v", e.Err)
			require.NoError(t, k.qp.Abort())
		})
	}
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{RecvDepth: 1}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{}))
		k.p.Send(wiretest.Send(1, 0, ""), wiretest.Send(2, 0, ""))
		time.Sleep(iwarp.NoticeAfter)
		e := k.wantEvents("a QP without an SRQ holds none of its receives", iwarp.EventNoReceive)
		require.NotContains(t, e.Err.Error(), "SRQ")
		require.NoError(t, k.qp.Abort())
	})
}

// TestMessagesWaitForASharedReceive: all that wait get one, one after the other.
func TestMessagesWaitForASharedReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		cq, err := s.rnic.CreateCQ(8)
		require.NoError(t, err)
		var all []*wiretest.Peer
		for range 3 {
			p, _ := s.opens(iwarp.QPConfig{RecvCQ: cq, RecvDepth: 2, RNRWait: 7 * time.Second})
			p.Send(wiretest.Send(1, 0, "hi"))
			all = append(all, p)
		}
		seen := make(map[*iwarp.QP]bool)
		for id := range uint64(3) {
			time.Sleep(2 * time.Second)
			require.Zero(t, cq.Poll(make([]iwarp.WC, 1)))
			s.posts(id)
			wc := s.completes(cq, 1)[0]
			require.Equal(t, []any{id, iwarp.StatusSuccess}, []any{wc.ID, wc.Status})
			seen[wc.QP] = true
		}
		require.Len(t, seen, 3, "each QP has received")
		for _, p := range all {
			p.Send(wiretest.Send(2, 0, ""))
		}
		for _, p := range all {
			require.Equal(t, []byte{0x12, 0x02}, p.Segment()[18:20], "after RNRWait it is an error, as ever")
		}
	})
}

// TestManyPeersShareFewReceives: every message is received once, in its peer's order, although there are fewer receives
// than peers and they are posted again one by one.
func TestManyPeersShareFewReceives(t *testing.T) {
	const peers, each, receives = 6, 300, 4
	s := newShop(t, receives, nil)
	client := newSide(t, nil)
	cq, err := s.rnic.CreateCQ(peers * receives)
	require.NoError(t, err)
	ctx := testContext(t)
	l, err := s.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	defer l.Close()
	var all sync.WaitGroup
	for i := range peers {
		all.Go(func() {
			qp, err := client.rnic.Dial(ctx, "tcp", l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
			if !fine(t, err) {
				return
			}
			for n := range each {
				msg := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(i)), uint32(n))

				if _, err := doOne(ctx, qp, iwarp.SendWR{Op: iwarp.OpSend, Inline: msg}); !fine(t, err) {
					return
				}
			}
		})
		cr, err := l.Accept(ctx)
		require.NoError(t, err)
		_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, SRQ: s.srq, RecvCQ: cq, RecvDepth: 1 + i%receives, RNRWait: wiretest.Patience})
		require.NoError(t, err)
	}
	s.posts(0, 1, 2, 3)
	next := make(map[uint32]uint32)
	from := make(map[*iwarp.QP]uint32)
	for range peers * each {
		wc := s.completes(cq, 1)[0]
		require.Equal(t, iwarp.StatusSuccess, wc.Status)
		b := s.mem[wc.ID*8:]
		i, n := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		require.Equal(t, next[i], n, "the messages of a peer come in their order")
		next[i]++
		if sender, ok := from[wc.QP]; ok {
			require.Equal(t, sender, i, "a completion names the QP that its message came to")
		}
		from[wc.QP] = i
		s.posts(wc.ID)
	}
	all.Wait()
	require.Equal(t, iwarp.SRQStats{Posted: peers*each + receives, Taken: peers * each, Free: receives, Depth: receives}, s.srq.Stats())
}

func TestNothingIsAllocatedForASharedReceive(t *testing.T) {
	client := newSide(t, nil)
	s := newShop(t, 8, nil)
	client.connect(s.side, pairConfig{server: iwarp.QPConfig{SRQ: s.srq}})
	wcs := make([]iwarp.WC, 1)
	recv := []iwarp.RecvWR{{Local: []iwarp.SGE{s.mr.Slice(0, 8)}}}
	wr := []iwarp.SendWR{{Op: iwarp.OpSend, Inline: make([]byte, 8)}}
	wantNoAllocs(t, "a Send, and the shared receive that takes it", func() {
		if err := s.srq.PostRecv(recv...); err != nil {
			t.Fatal(err)
		}
		if err := client.qp.PostSend(wr...); err != nil {
			t.Fatal(err)
		}
		one(t, client.qp.SendCQ(), wcs)
		one(t, s.qp.RecvCQ(), wcs)
	})
}

// TestSRQDoesNotKeepAQPThatHasEnded: its connection ended while the reader asked for a receive.
func TestSRQDoesNotKeepAQPThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		srq, err := s.pd.CreateSRQ(1)
		require.NoError(t, err)
		_, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd, SRQ: srq})
		require.False(t, qp.HasReceive())
		require.Equal(t, 1, srq.Starved())
		require.NoError(t, qp.Abort())
		require.True(t, qp.HasReceive(), "none will be posted")
		require.False(t, srq.Offers(qp), "the question came late")
		require.Zero(t, srq.Starved())
		require.NoError(t, srq.Close())
	})
}

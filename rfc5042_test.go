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

// RFC 5042, where no test of a protocol covers it already.

func TestSEC_25_NoCQIsSharedUnlessTheApplicationSaysSo(t *testing.T) {
	s := newSide(t, nil)
	qc := &iwarp.QPConfig{PD: s.pd}
	a, err := s.rnic.NewQP(qc)
	require.NoError(t, err)
	b, err := s.rnic.NewQP(qc) // of the same configuration, which still names no CQ
	require.NoError(t, err)
	require.NotSame(t, a.SendCQ(), b.SendCQ())
	require.NotSame(t, a.RecvCQ(), b.RecvCQ())
	require.Equal(t, &iwarp.QPConfig{PD: s.pd}, qc)
}

// TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow: whatever is posted, and however late the CQ is polled (section
// 6.4.3.2).
func TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const send, recv = 3, 2
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(2 * (send + recv))
		require.NoError(t, err)
		for range 2 {
			qc := &iwarp.QPConfig{PD: s.pd, SendCQ: cq, RecvCQ: cq, SendDepth: send, RecvDepth: recv}
			p, qp := responder(t, s.rnic, "pipe", qc)
			for qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}) == nil {
				p.Segment()
				synctest.Wait()
			}
			for msn := uint32(1); qp.PostRecv(iwarp.RecvWR{}) == nil; msn++ {
				p.Send(send1(msn))
				synctest.Wait()
			}
			require.Equal(t, iwarp.StateRTS, qp.State())
		}
		require.Equal(t, 2*(send+recv), cq.Poll(make([]iwarp.WC, 99)), "it is full, and nothing was lost")
	})
}

// TestSEC_23_CQThatIsTooSmallIsRefused: when a QP is attached to it, and when it is made smaller (section 6.4.3.2). A
// refused QP leaves nothing behind.
func TestSEC_23_CQThatIsTooSmallIsRefused(t *testing.T) {
	const send, recv = 5, 3
	s := newSide(t, nil)
	srq, err := s.pd.CreateSRQ(1)
	require.NoError(t, err)
	qp := func(sendCQ, recvCQ *iwarp.CQ, q *iwarp.SRQ) (*iwarp.QP, error) {
		return s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd, SendCQ: sendCQ, RecvCQ: recvCQ, SRQ: q, SendDepth: send, RecvDepth: recv})
	}
	for why, c := range map[string]struct {
		needs  int
		attach func(cq *iwarp.CQ) (*iwarp.QP, error)
	}{
		"both queues":           {send + recv, func(cq *iwarp.CQ) (*iwarp.QP, error) { return qp(cq, cq, nil) }},
		"the send queue":        {send, func(cq *iwarp.CQ) (*iwarp.QP, error) { return qp(cq, nil, nil) }},
		"the receive queue":     {recv, func(cq *iwarp.CQ) (*iwarp.QP, error) { return qp(nil, cq, nil) }},
		"what it has of an SRQ": {recv, func(cq *iwarp.CQ) (*iwarp.QP, error) { return qp(nil, cq, srq) }},
		"two QPs": {2 * (send + recv), func(cq *iwarp.CQ) (*iwarp.QP, error) {
			first, err := qp(cq, cq, nil)
			require.NoError(t, err)
			defer first.Abandon(nil)
			return qp(cq, cq, nil)
		}},
	} {
		cq, err := s.rnic.CreateCQ(c.needs - 1)
		require.NoError(t, err)
		_, err = c.attach(cq)
		require.ErrorIs(t, err, iwarp.ErrCQTooSmall, why)
		require.Zero(t, s.rnic.InUse().MaxQP, why)
		require.Zero(t, cq.Needed(), why)
		require.NoError(t, cq.Resize(c.needs))
		made, err := c.attach(cq)
		require.NoError(t, err, why)
		require.ErrorIs(t, cq.Resize(cq.Needed()-1), iwarp.ErrCQTooSmall, why)
		made.Abandon(nil)
		require.NoError(t, cq.Resize(1), "what was needed is given back")
		require.NoError(t, cq.Close())
	}
	own, err := qp(nil, nil, nil)
	require.NoError(t, err, "a CQ of a QP's own is large enough")
	_, err = qp(own.SendCQ(), nil, nil)
	require.ErrorIs(t, err, iwarp.ErrCQTooSmall, "but for no other")
	require.ErrorIs(t, own.RecvCQ().Resize(recv-1), iwarp.ErrCQTooSmall)
	own.Abandon(nil)
	require.NoError(t, srq.Close())
	require.NoError(t, s.pd.Close())
}

func send1(msn uint32) []byte { return wiretest.Send(msn, 0, "") }

// TestSEC_32_IdleStreamsCanBeFoundAndReaped: by counters that do not move (section
// 6.4.2). What the QP held can then be used by others.
func TestSEC_32_IdleStreamsCanBeFoundAndReaped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxQP: 2}})
		busy, b := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		_, idle := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		before := map[*iwarp.QP]iwarp.QPStats{b: b.Stats(), idle: idle.Stats()}
		busy.Send(wiretest.Write(0, 0, ""))
		time.Sleep(time.Minute)
		for qp, was := range before {
			if qp.Stats() == was {
				require.Same(t, idle, qp)
				require.NoError(t, qp.Abort())
				<-qp.Done()
			}
		}
		_, again := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		require.Equal(t, []iwarp.State{iwarp.StateRTS, iwarp.StateRTS}, []iwarp.State{b.State(), again.State()})
	})
}

// TestSEC_33_WaitsForAReceiveAreCounted: a peer that forces this side's slow path can be detected (section 6.4.4).
func TestSEC_33_WaitsForAReceiveAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		for msn := range uint32(3) {
			require.Equal(t, uint64(msn), k.qp.Stats().ReceiveWaits)
			k.p.Send(send1(msn + 1))
			synctest.Wait()
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{}))
			k.completes(k.cq, 1)
		}
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{}))
		k.p.Send(send1(4))
		k.completes(k.cq, 1)
		require.Equal(t, uint64(3), k.qp.Stats().ReceiveWaits, "one that found its receive did not wait")
	})
}

// TestSEC_3_4_6_NeighboursAreKeptApart: no neighbour can use what was not declared as shared, whether each stream has
// its own PD or each STag is bound to one stream (section 6.1.1).
func TestSEC_3_4_6_NeighboursAreKeptApart(t *testing.T) {
	for name, bound := range map[string]bool{"by PDs": false, "by STags of one stream": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				theirs := s.pd
				if !bound {
					var err error
					theirs, err = s.rnic.AllocPD()
					require.NoError(t, err)
				}
				p, owner := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
				q, neighbour := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: theirs})
				var opts *iwarp.MROptions
				if bound {
					opts = &iwarp.MROptions{QP: owner}
				}
				mem, mr := s.register(4, stag.LocalWrite|stag.RemoteWrite, opts)
				p.Send(wiretest.Write(mr.STag(), 0, "mine"))
				synctest.Wait()
				require.Equal(t, "mine", string(mem), "the peer of its owner writes to it")
				q.Send(wiretest.Write(mr.STag(), 0, "evil"))
				require.Equal(t, []byte{0x11, 0x02}, q.Segment()[18:20], "for the neighbour's it is not associated")
				q.Close()
				<-neighbour.Done()
				require.Equal(t, "mine", string(mem))
				require.Equal(t, iwarp.StateRTS, owner.State())
				require.NoError(t, owner.Abort())
			})
		})
	}
}

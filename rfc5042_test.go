package iwarp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// RFC 5042, where no test of a protocol shows it already.

func TestSEC_25_NoCQIsSharedUnlessTheApplicationSaysSo(t *testing.T) {
	s := newSide(t, nil)
	qc := &QPConfig{PD: s.pd}
	a, err := s.rnic.NewQP(qc)
	require.NoError(t, err)
	b, err := s.rnic.NewQP(qc) // of the same configuration, which names no CQ still
	require.NoError(t, err)
	require.NotSame(t, a.SendCQ(), b.SendCQ())
	require.NotSame(t, a.RecvCQ(), b.RecvCQ())
	require.Equal(t, &QPConfig{PD: s.pd}, qc)
}

// TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow: whatever is posted, and however
// late it is polled (section 6.4.3.2).
func TestSEC_23_CQOfTheSumOfItsQueuesDoesNotOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const send, recv = 3, 2
		s := newSide(t, nil)
		cq, err := s.rnic.CreateCQ(2 * (send + recv))
		require.NoError(t, err)
		for range 2 {
			qc := &QPConfig{PD: s.pd, SendCQ: cq, RecvCQ: cq, SendDepth: send, RecvDepth: recv}
			p, qp := responder(t, s.rnic, "pipe", qc)
			for qp.PostSend(SendWR{Op: OpSend}) == nil {
				p.segment()
				synctest.Wait()
			}
			for msn := uint32(1); qp.PostRecv(RecvWR{}) == nil; msn++ {
				p.writes(fpdu(send1(msn)))
				synctest.Wait()
			}
			require.Equal(t, StateRTS, qp.State())
		}
		require.Equal(t, 2*(send+recv), cq.Poll(make([]WC, 99)), "it is full, and nothing was lost")
	})
}

// TestSEC_23_CQThatIsTooSmallIsRefused: when a QP is attached to it, and when it is made
// smaller (section 6.4.3.2). Nothing is left of a QP that was refused.
func TestSEC_23_CQThatIsTooSmallIsRefused(t *testing.T) {
	const send, recv = 5, 3
	s := newSide(t, nil)
	srq, err := s.pd.CreateSRQ(1)
	require.NoError(t, err)
	qp := func(sendCQ, recvCQ *CQ, q *SRQ) (*QP, error) {
		return s.rnic.NewQP(&QPConfig{PD: s.pd, SendCQ: sendCQ, RecvCQ: recvCQ, SRQ: q, SendDepth: send, RecvDepth: recv})
	}
	for why, c := range map[string]struct {
		needs  int
		attach func(cq *CQ) (*QP, error)
	}{
		"both queues":           {send + recv, func(cq *CQ) (*QP, error) { return qp(cq, cq, nil) }},
		"the send queue":        {send, func(cq *CQ) (*QP, error) { return qp(cq, nil, nil) }},
		"the receive queue":     {recv, func(cq *CQ) (*QP, error) { return qp(nil, cq, nil) }},
		"what it has of an SRQ": {recv, func(cq *CQ) (*QP, error) { return qp(nil, cq, srq) }},
		"two QPs": {2 * (send + recv), func(cq *CQ) (*QP, error) {
			first, err := qp(cq, cq, nil)
			require.NoError(t, err)
			defer first.Abandon(nil)
			return qp(cq, cq, nil)
		}},
	} {
		cq, err := s.rnic.CreateCQ(c.needs - 1)
		require.NoError(t, err)
		_, err = c.attach(cq)
		require.ErrorIs(t, err, ErrCQTooSmall, why)
		require.Zero(t, s.rnic.InUse().MaxQP, why)
		require.Zero(t, cq.Needed(), why)
		require.NoError(t, cq.Resize(c.needs))
		made, err := c.attach(cq)
		require.NoError(t, err, why)
		require.ErrorIs(t, cq.Resize(cq.Needed()-1), ErrCQTooSmall, why)
		made.Abandon(nil)
		require.NoError(t, cq.Resize(1), "what was needed is given back")
		require.NoError(t, cq.Close())
	}
	own, err := qp(nil, nil, nil)
	require.NoError(t, err, "a CQ of a QP's own is large enough")
	_, err = qp(own.SendCQ(), nil, nil)
	require.ErrorIs(t, err, ErrCQTooSmall, "but for no other")
	require.ErrorIs(t, own.RecvCQ().Resize(recv-1), ErrCQTooSmall)
	own.Abandon(nil)
	require.NoError(t, srq.Close())
	require.NoError(t, s.pd.Close())
}

func send1(msn uint32) []byte { return send(msn, 0, "") }

// TestSEC_32_IdleStreamsCanBeFoundAndReaped: by counters that do not move (section
// 6.4.2). What the QP held can then be used by others.
func TestSEC_32_IdleStreamsCanBeFoundAndReaped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, &Config{Limits: Limits{MaxQP: 2}})
		busy, b := responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		_, idle := responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		before := map[*QP]QPStats{b: b.Stats(), idle: idle.Stats()}
		busy.writes(fpdu(write(0, 0, "")))
		time.Sleep(time.Minute)
		for qp, was := range before {
			if qp.Stats() == was {
				require.Same(t, idle, qp)
				require.NoError(t, qp.Abort())
				<-qp.Done()
			}
		}
		_, again := responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
		require.Equal(t, []State{StateRTS, StateRTS}, []State{b.State(), again.State()})
	})
}

// TestSEC_33_WaitsForAReceiveAreCounted: a peer that makes this side take its slow path
// can be found out (section 6.4.4).
func TestSEC_33_WaitsForAReceiveAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		for msn := range uint32(3) {
			require.Equal(t, uint64(msn), k.qp.Stats().ReceiveWaits)
			k.p.writes(fpdu(send1(msn + 1)))
			synctest.Wait()
			require.NoError(t, k.qp.PostRecv(RecvWR{}))
			k.completes(k.cq, 1)
		}
		require.NoError(t, k.qp.PostRecv(RecvWR{}))
		k.p.writes(fpdu(send1(4)))
		k.completes(k.cq, 1)
		require.Equal(t, uint64(3), k.qp.Stats().ReceiveWaits, "one that found its receive did not wait")
	})
}

// TestSEC_3_4_6_NeighboursAreKeptApart: what was not declared to be shared, no neighbour
// can use, whether each stream has its own PD or each STag is bound to one stream (section
// 6.1.1).
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
				p, owner := responder(t, s.rnic, "pipe", &QPConfig{PD: s.pd})
				q, neighbour := responder(t, s.rnic, "pipe", &QPConfig{PD: theirs})
				var opts *MROptions
				if bound {
					opts = &MROptions{QP: owner}
				}
				mem, mr := s.register(4, stag.LocalWrite|stag.RemoteWrite, opts)
				p.writes(fpdu(write(mr.STag(), 0, "mine")))
				synctest.Wait()
				require.Equal(t, "mine", string(mem), "the peer of its owner writes to it")
				q.writes(fpdu(write(mr.STag(), 0, "evil")))
				require.Equal(t, []byte{0x11, 0x02}, q.segment()[18:20], "for the neighbour's it is not associated")
				require.NoError(t, q.c.Close())
				<-neighbour.Done()
				require.Equal(t, "mine", string(mem))
				require.Equal(t, StateRTS, owner.State())
				require.NoError(t, owner.Abort())
			})
		})
	}
}

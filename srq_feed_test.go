package iwarp_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// TestReceiveResumesOneMessage: of many QPs whose messages wait, each posted receive lets the QP that has waited longest
// try again. Each try costs as much as a message.
func TestReceiveResumesOneMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		qps := make([]*side, 6)
		for i := range qps {
			p, qp := s.opens(iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever})
			p.Send(wiretest.Send(1, 0, "m"))
			synctest.Wait()
			qps[i] = qp
		}
		for i := range uint64(3) {
			s.posts(i)
			synctest.Wait()
			qps[i].receives(i, 1)
		}
		s.posts(3, 4)
		synctest.Wait()
		for i := 3; i < 5; i++ {
			require.Equal(t, 1, qps[i].qp.RecvCQ().Poll(make([]iwarp.WC, 1)))
		}
		for i, qp := range qps {
			require.EqualValues(t, 1, qp.qp.Stats().ReceiveWaits, "QP %d has tried in its turn only", i)
		}
	})
}

// TestReceiveOfAQPThatEndsGoesToTheNext: a QP that is ending no longer waits. A QP that ends when a receive is meant for
// it leaves the receive to the others.
func TestReceiveOfAQPThatEndsGoesToTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		qps := make([]*side, 3)
		for i := range qps {
			p, qp := s.opens(iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever})
			p.Send(wiretest.Send(1, 0, "m"))
			synctest.Wait()
			qps[i] = qp
		}
		ended := make(chan error)
		go func() { ended <- qps[0].qp.Terminate() }()
		synctest.Wait() // the peer does not end its half
		require.Equal(t, 3, s.srq.Starved(), "the QP has not ended")
		s.posts(0)
		synctest.Wait()
		require.Equal(t, 1, qps[1].qp.RecvCQ().Stats().Waiting, "at once, not only when the first has ended")
		qps[1].receives(0, 1)

		s.srq.PostUnheard(t, iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{s.mr.Slice(8, 8)}})
		require.Empty(t, qps[2].qp.RecvCQ().Stats().Waiting)
		require.NoError(t, qps[1].qp.Abort())
		synctest.Wait()
		qps[2].receives(1, 1)
		require.NoError(t, <-ended)
	})
}

// TestQPThatHasAReceiveWaitsNoMore: its message was tried again for another reason, before its turn, and found a
// receive.
func TestQPThatHasAReceiveWaitsNoMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		p, qp := s.opens(iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever})
		p.Send(wiretest.Send(1, 0, "m"))
		synctest.Wait()
		require.Equal(t, 1, s.srq.Starved())
		s.srq.PostUnheard(t, iwarp.RecvWR{Local: []iwarp.SGE{s.mr.Slice(0, 8)}})
		qp.qp.Resume()
		synctest.Wait()
		qp.receives(0, 1)
		require.Zero(t, s.srq.Starved())
	})
}

// TestReceivesBeforeARefusedOneResumeMessages, although the call of PostRecv fails.
func TestReceivesBeforeARefusedOneResumeMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		p, qp := s.opens(iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever})
		p.Send(wiretest.Send(1, 0, "m"))
		synctest.Wait()
		err := s.srq.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{s.mr.Slice(0, 8)}}, iwarp.RecvWR{Local: []iwarp.SGE{{Len: 1}}})
		var refused *iwarp.PostError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 1, refused.N)
		synctest.Wait()
		qp.receives(0, 1)
	})
}

// TestVERBS_88_ReceiveIsNotForAQPAtItsCap: a QP that holds RecvDepth receives waits for a Poll. A receive that is posted meanwhile
// resumes the QP that waits behind it.
func TestVERBS_88_ReceiveIsNotForAQPAtItsCap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(0)
		capped, c := s.opens(iwarp.QPConfig{RecvDepth: 1, RNRWait: iwarp.RNRWaitForever})
		waiting, w := s.opens(iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever})
		capped.Send(wiretest.Send(1, 0, "m"), wiretest.Send(2, 0, "m"))
		synctest.Wait()
		waiting.Send(wiretest.Send(1, 0, "m"))
		synctest.Wait()
		require.Equal(t, 1, s.srq.Starved(), "one waits for a receive, the other for a Poll")
		s.posts(1)
		synctest.Wait()
		require.Equal(t, 1, w.qp.RecvCQ().Stats().Waiting)
		w.receives(1, 1)
		c.receives(0, 1)
		s.posts(2)
		c.receives(2, 1)
	})
}

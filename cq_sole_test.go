package iwarp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A waited is what a wait for one completion has returned.
type waited struct {
	wc  WC
	err error
}

// waitsFor starts a goroutine that waits for one completion of cq.
func waitsFor(ctx context.Context, cq *CQ, ended chan<- waited) {
	go func() {
		var one [1]WC
		_, err := cq.Wait(ctx, one[:])
		ended <- waited{one[0], err}
	}()
}

// wants requires that a wait has ended with a completion of qp.
func wants(t *testing.T, ended <-chan waited, qp *QP, st Status, expectation string) {
	t.Helper()
	select {
	case got := <-ended:
		require.NoError(t, got.err, expectation)
		require.True(t, got.wc.QP == qp, expectation)
		require.Equal(t, st, got.wc.Status, expectation)
	case <-time.After(time.Minute):
		require.Fail(t, "all goroutines still wait", expectation)
	}
}

// TestSecondQPOfACQ is created while goroutines wait, one of which receives for the first one: its
// completions end a wait all the same.
func TestSecondQPOfACQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoleSide(t)
		a, toA := s.establishes()
		ended := make(chan waited, 2)
		waitsFor(t.Context(), s.cq, ended)
		waitsFor(t.Context(), s.cq, ended)
		synctest.Wait()
		require.True(t, toA.parked(), "one of them receives")
		require.Equal(t, 1, s.listed(), "the other one sleeps")

		b, toB := s.establishes()
		synctest.Wait()
		require.False(t, toA.parked(), "no goroutine receives for the first QP any more")
		require.Equal(t, 2, s.listed())
		require.Empty(t, ended)
		toB.arrives(1)
		wants(t, ended, b, StatusSuccess, "the second QP has received a message")
		toA.arrives(1)
		wants(t, ended, a, StatusSuccess, "so has the first")
		require.Zero(t, s.listed())
	})
}

// TestSoleQPEnds while goroutines wait: they wait for the next one.
func TestSoleQPEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoleSide(t)
		a, toA := s.establishes()
		ended := make(chan waited, 3)
		for range 2 {
			waitsFor(t.Context(), s.cq, ended)
			synctest.Wait()
		}
		require.True(t, toA.parked(), "one of them receives")
		require.NoError(t, a.Abort())
		wants(t, ended, a, StatusFlushed, "a receive was posted")
		synctest.Wait()
		require.Empty(t, ended)
		require.Equal(t, 1, s.listed(), "the other one waits")

		b, toB := s.establishes()
		require.NoError(t, b.PostRecv(RecvWR{}))
		waitsFor(t.Context(), s.cq, ended)
		synctest.Wait()
		require.True(t, toB.parked(), "one of them receives for the new QP")
		toB.arrives(1)
		wants(t, ended, b, StatusSuccess, "the first message is for one of them")
		toB.arrives(2)
		wants(t, ended, b, StatusSuccess, "and the second for the other")
	})
}

// TestWaitersOfAQPsOwnCQ end with it.
func TestWaitersOfAQPsOwnCQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoleSide(t)
		s.cq = nil
		a, toA := s.establishes()
		ended := make(chan waited, 3)
		for range 3 {
			waitsFor(t.Context(), a.RecvCQ(), ended)
			synctest.Wait()
		}
		require.True(t, toA.parked(), "one of them receives")
		require.NoError(t, a.Abort())
		flushed := 0
		for range 3 { // in any order: all three wake up at once
			got := <-ended
			if got.err != nil {
				require.ErrorIs(t, got.err, errCQClosed)
				continue
			}
			require.True(t, got.wc.QP == a)
			require.Equal(t, StatusFlushed, got.wc.Status)
			flushed++
		}
		require.Equal(t, 1, flushed, "one receive was posted")
	})
}

// TestWaiterOfAQPThatIsNotEstablished is not lost when that is.
func TestWaiterOfAQPThatIsNotEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoleSide(t)
		qp := s.creates()
		ended := make(chan waited, 1)
		waitsFor(t.Context(), s.cq, ended)
		synctest.Wait()
		s.starts(qp).arrives(1)
		wants(t, ended, qp, StatusSuccess, "it is told")
	})
}

// TestCompletionDoesNotWakeAWaiterThatIsAlreadyWoken, of another QP, and that takes no such
// completion: the one after it would sleep.
func TestCompletionDoesNotWakeAWaiterThatIsAlreadyWoken(t *testing.T) {
	cq, err := opens(t).CreateCQ(4)
	require.NoError(t, err)
	solicited := cq.waiter(true, nil)
	solicited.Enlist()
	require.NoError(t, cq.attach(noQP, 0))
	require.Len(t, solicited.token, 1, "it looks again, since all queues are of one QP now")
	plain := cq.waiter(false, noQP)
	plain.Enlist()
	require.True(t, cq.Push(WC{QP: noQP}))
	require.Len(t, plain.token, 1, "the completion is for this one")
	require.Equal(t, 1, cq.Poll(make([]WC, 1)))
	solicited.Delist()
	plain.Delist()
	require.Empty(t, cq.waiters)
	cq.detach(0)
}

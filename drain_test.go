package iwarp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// drains starts Drain and returns where its error will be.
func (s *side) drains(ctx context.Context) <-chan error {
	errs := make(chan error, 1)
	go func() { errs <- s.qp.Drain(ctx) }()
	synctest.Wait()
	return errs
}

// TestDrainWaitsForWhatWasPostedBefore: not for what comes later, and not for receives.
func TestDrainWaitsForWhatWasPostedBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, k.qp.Drain(ctx), "there is nothing to wait for")
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 9}))
		require.NoError(t, k.qp.Drain(ctx), "receives stay posted")

		k.posts(
			SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote},
			SendWR{ID: 2, Op: OpSend, Flags: ReadFence | Unsignaled})
		errs := k.drains(testContext(t))
		k.posts(SendWR{ID: 3, Op: OpRDMARead, Local: k.at(1, 1), Remote: remote})
		require.ErrorIs(t, k.qp.Drain(ctx), context.Canceled)
		require.Empty(t, errs)
		k.p.segment()
		k.answersRead(0, "x")
		require.NoError(t, <-errs)
		require.Equal(t, send(1, 0, ""), k.p.segment(), "the unsignaled Send was waited for too")
		wcs := make([]WC, 4)
		require.Equal(t, 1, k.cq.Poll(wcs), "completions are on the CQ when Drain returns")
		require.EqualValues(t, 1, wcs[0].ID)

		k.answersRead(1, "y")
		k.wantCompletions("the QP lives on", 3)
		require.NoError(t, k.qp.Abort())
	})
}

// TestDrainOfAnEndingQPWaitsForItsEnd: everything is flushed then, receives included.
func TestDrainOfAnEndingQPWaitsForItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(RecvWR{ID: 2}))
		k.posts(SendWR{ID: 1, Op: OpRDMARead, Local: k.at(0, 1), Remote: remote})
		errs := k.drains(testContext(t))
		k.p.segment()
		k.p.writes(fpdu(write(0x99, 0, "x"))) // ends the stream; the peer stays
		start := time.Now()
		require.NoError(t, <-errs, "that the work failed is told by its completion")
		require.Equal(t, LingerTime, time.Since(start))
		wcs := make([]WC, 3)
		require.Equal(t, 2, k.cq.Poll(wcs))
		require.Equal(t, []uint64{1, 2}, ids(wcs[:2]))
		require.NoError(t, k.qp.Drain(context.Background()), "an ended QP is drained")
	})
}

func TestDrainWithoutAConnectionIsRefused(t *testing.T) {
	s := newSide(t, nil)
	_ = s.dialTo(QPConfig{Setup: func(ctx context.Context, qp *QP) error {
		require.ErrorIs(t, qp.Drain(ctx), ErrNotConnected, "it would wait for the connection, which waits for Setup")
		return context.Canceled
	}}, func(*peer) {})
}

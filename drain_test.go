package iwarp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
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
		k := newTalk(t, iwarp.QPConfig{}, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, k.qp.Drain(ctx), "there is nothing to wait for")
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 9}))
		require.NoError(t, k.qp.Drain(ctx), "receives stay posted")

		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote},
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence | iwarp.Unsignaled})
		errs := k.drains(testContext(t))
		k.posts(iwarp.SendWR{ID: 3, Op: iwarp.OpRDMARead, Local: k.at(1, 1), Remote: remote})
		require.ErrorIs(t, k.qp.Drain(ctx), context.Canceled)
		require.Empty(t, errs)
		k.p.Segment()
		k.answersRead(0, "x")
		require.NoError(t, <-errs)
		require.Equal(t, wiretest.Send(1, 0, ""), k.p.Segment(), "the unsignaled Send was waited for too")
		wcs := make([]iwarp.WC, 4)
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
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 2}))
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 1), Remote: remote})
		errs := k.drains(testContext(t))
		k.p.Segment()
		k.p.Send(wiretest.Write(0x99, 0, "x")) // ends the stream; the peer stays
		start := time.Now()
		require.NoError(t, <-errs, "that the work failed is told by its completion")
		require.Equal(t, iwarp.PeerEndTime, time.Since(start))
		wcs := make([]iwarp.WC, 3)
		require.Equal(t, 2, k.cq.Poll(wcs))
		require.Equal(t, []uint64{1, 2}, ids(wcs[:2]))
		require.NoError(t, k.qp.Drain(context.Background()), "an ended QP is drained")
	})
}

// TestDrainOfAQPThatIsBeingClosedWaitsForItsEnd: the QP is in StateRTS until what the peer has requested is done, but
// accepts no work any more.
func TestDrainOfAQPThatIsBeingClosedWaitsForItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		a, b := recordpipe.New(recordpipe.Options{})
		client.qp, server.qp = iwarp.ConnectOver(t, a, b, client.rnic, &iwarp.QPConfig{PD: client.pd, Commit: committing.Commit},
			server.rnic, &iwarp.QPConfig{PD: server.pd, Commit: committing.Commit})
		m := medium{hold: make(chan struct{})}
		_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m})
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{ID: 1}))
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8)}}))
		synctest.Wait()
		require.NoError(t, server.qp.Drain(context.Background()), "no work of its own is outstanding")

		closed := make(chan error, 1)
		go func() { closed <- server.qp.Close() }()
		synctest.Wait()
		require.Equal(t, iwarp.StateRTS, server.qp.State())
		ctx, cancel := context.WithCancel(context.Background())
		late := server.drains(ctx)
		require.Empty(t, late)
		cancel()
		require.ErrorIs(t, <-late, context.Canceled)
		errs := server.drains(context.Background())
		require.Empty(t, errs)
		close(m.hold)
		require.NoError(t, <-errs)
		wcs := make([]iwarp.WC, 2)
		require.Equal(t, 1, server.qp.RecvCQ().Poll(wcs))
		require.Equal(t, iwarp.StatusFlushed, wcs[0].Status)
		require.NoError(t, <-closed)
	})
}

func TestDrainWithoutAConnectionIsRefused(t *testing.T) {
	s := newSide(t, nil)
	_ = s.dialTo(iwarp.QPConfig{Setup: func(ctx context.Context, qp *iwarp.QP) error {
		require.ErrorIs(t, qp.Drain(ctx), iwarp.ErrNotConnected, "it would wait for the connection, which waits for Setup")
		return context.Canceled
	}}, func(*wiretest.Peer) {})
}

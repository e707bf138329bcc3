package iwarp_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

func TestHelpersHavePrivateCompletions(t *testing.T) {
	client, server := connect(t, pairConfig{})
	ctx := testContext(t)
	_, cm := client.register(64, stag.LocalWrite, nil)
	_, sm := server.register(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	received := make(chan error, 1)
	go func() {
		_, err := server.qp.Recv(ctx, sm.Slice(32, 8))
		received <- err
	}()
	require.NoError(t, client.qp.RDMAWrite(ctx, sm.Advertise(0, 8), cm.Slice(0, 8)))
	require.NoError(t, client.qp.RDMARead(ctx, cm.Slice(8, 8), sm.Advertise(0, 8)))
	require.NoError(t, client.qp.Send(ctx, cm.Slice(0, 4), cm.Slice(8, 4)))
	require.NoError(t, <-received)
	var none [1]iwarp.WC
	for _, cq := range []*iwarp.CQ{client.qp.SendCQ(), client.qp.RecvCQ(), server.qp.SendCQ(), server.qp.RecvCQ()} {
		require.Zero(t, cq.Poll(none[:]))
	}
}

func TestHelpersReportWhatWentWrong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		ctx := testContext(t)
		require.ErrorIs(t, k.qp.RDMAWrite(ctx, iwarp.RemoteBuffer{Len: 1}, k.mr.Slice(0, 2)), iwarp.ErrBounds, "refused at once")
		var post *iwarp.PostError
		err := k.qp.Send(ctx, k.mr.Slice(-1, 1))
		require.ErrorIs(t, err, iwarp.ErrBounds)
		require.NotErrorAs(t, err, &post, "one work request has no number")
		_, err = k.qp.Recv(ctx, k.mr.Slice(-1, 1))
		require.ErrorIs(t, err, iwarp.ErrBounds)

		errs := make(chan error, 1)
		go func() { errs <- k.qp.RDMARead(ctx, k.mr.Slice(0, 8), remote) }()
		asked := k.p.Segment()
		k.p.Send(wiretest.Terminate(0x0101, wiretest.ReadHeader, asked))
		err = <-errs
		require.ErrorIs(t, err, iwarp.ErrBounds, "what the peer says of it")
		var te *iwarp.TerminateError
		require.ErrorAs(t, err, &te)
		require.True(t, te.Remote)
	})
}

// TestCancelledContextStopsTheWaiting: but not the work request.
func TestCancelledContextStopsTheWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, k.qp.RDMARead(ctx, k.mr.Slice(0, 4), remote), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		k.p.Segment()
		k.answersRead(0, "late")
		synctest.Wait()
		require.Equal(t, "late", string(k.mem[:4]), "the Read goes on")
		sq, _ := k.qp.Unfinished()
		require.Zero(t, sq, "and completes, unseen")
		k.wantNoCompletion("not on the user's CQ either")

		_, err := k.qp.Recv(ctx, k.mr.Slice(64, 8))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, k.qp.Posted(), "the receive stays posted")
		k.p.Send(wiretest.Send(1, 0, "lost"))
		synctest.Wait()
		require.Equal(t, "lost", string(k.mem[64:68]))

		require.NoError(t, k.qp.Abort())
	})
}

func TestHelpersWaitForRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{SendDepth: 2, RecvDepth: 1}, nil)
		k.speaks()
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead}, iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead})
		errs := make(chan error, 8)
		for range 4 {
			go func() { errs <- k.qp.Send(testContext(t)) }()
		}
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, k.qp.Send(short), context.DeadlineExceeded, "room is waited for under the context")
		require.Empty(t, errs)
		k.p.Segment()
		k.p.Segment()
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		synctest.Wait()
		require.Empty(t, errs, "there is room when the completions have been polled")
		k.wantCompletions("the Reads", 1, 2)
		for msn := range uint32(4) {
			require.Equal(t, wiretest.Send(msn+1, 0, ""), k.p.Segment(), "one after the other gets its turn")
			require.NoError(t, <-errs)
		}

		lens := make(chan int, 8)
		for range 3 {
			go func() {
				n, err := k.qp.Recv(testContext(t), k.mr.Slice(0, 8))
				require.NoError(t, err)
				lens <- n
			}()
		}
		synctest.Wait()
		require.Equal(t, 1, k.qp.Posted())
		for msn := range uint32(3) {
			k.p.Send(wiretest.Send(msn+1, 0, "message"[:msn]))
			require.EqualValues(t, msn, <-lens, "and so for receives")
		}

		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{}))
		k.posts(iwarp.SendWR{Op: iwarp.OpRDMARead}, iwarp.SendWR{Op: iwarp.OpRDMARead})
		go func() { errs <- k.qp.Send(testContext(t)) }()
		go func() {
			_, err := k.qp.Recv(testContext(t), iwarp.SGE{})
			errs <- err
		}()
		synctest.Wait()
		require.NoError(t, k.qp.Abort())
		require.ErrorIs(t, <-errs, iwarp.ErrAborted, "the end of the QP ends the waiting for room")
		require.ErrorIs(t, <-errs, iwarp.ErrAborted)
	})
}

func TestRemoteMemory(t *testing.T) {
	client, server := connect(t, pairConfig{})
	mem, mr := server.register(1000, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{BaseTO: 1 << 40})
	fillRandom(mem)
	m := client.qp.Remote(mr.Advertise(100, 300))
	require.EqualValues(t, 300, m.Size())
	want := bytes.Clone(mem)

	require.NoError(t, iotest.TestReader(io.NewSectionReader(m, 0, m.Size()), want[100:400]))
	for _, c := range []struct {
		off  int64
		n, m int
		err  error
	}{
		{0, 300, 300, nil},
		{0, 0, 0, nil},
		{299, 1, 1, nil},
		{300, 0, 0, nil},
		{1000, 0, 0, nil},
		{299, 2, 1, io.EOF},
		{0, 301, 300, io.EOF},
		{300, 1, 0, io.EOF},
		{math.MaxInt64, 1, 0, io.EOF},
		{-1, 1, 0, iwarp.ErrBounds},
		{math.MinInt64, 0, 0, iwarp.ErrBounds},
	} {
		p := make([]byte, c.n)
		n, err := m.ReadAt(p, c.off)
		require.Equal(t, c.m, n, "%+v", c)
		require.ErrorIs(t, err, c.err, "%+v", c)
		if n > 0 {
			require.Equal(t, want[100+c.off:][:n], p[:n])
		}
		require.Equal(t, make([]byte, c.n-n), p[n:], "nothing after it is touched")
	}

	for _, c := range []struct {
		off int64
		n   int
		err error
	}{
		{0, 300, nil},
		{299, 1, nil},
		{300, 0, nil},
		{300, 1, iwarp.ErrBounds},
		{0, 301, iwarp.ErrBounds},
		{-1, 1, iwarp.ErrBounds},
		{math.MaxInt64, 1, iwarp.ErrBounds},
		{math.MinInt64, 1, iwarp.ErrBounds},
	} {
		p := bytes.Repeat([]byte{byte(c.n)}, c.n)
		n, err := m.WriteAt(p, c.off)
		require.ErrorIs(t, err, c.err, "%+v", c)
		if err != nil {
			require.Zero(t, n)
			continue
		}
		require.Equal(t, c.n, n)
		copy(want[100+c.off:], p)
	}
	back := make([]byte, 300)
	_, err := m.ReadAt(back, 0) // it follows the Writes, and so confirms that they are placed
	require.NoError(t, err)
	require.Equal(t, want[100:400], back)
	require.Equal(t, want, mem, "and nothing else was written")
	require.Zero(t, client.rnic.InUse().MaxMR, "what was registered for a call is gone")
}

func TestRemoteMemoryIsBoundedByThePeer(t *testing.T) {
	client, server := connect(t, pairConfig{})
	_, mr := server.register(8, stag.RemoteRead, nil)
	m := client.qp.Remote(iwarp.RemoteBuffer{STag: mr.STag(), Len: 9})
	n, err := m.ReadAt(make([]byte, 9), 0)
	require.Zero(t, n)
	require.ErrorIs(t, err, iwarp.ErrBounds, "the peer decides")
	require.Zero(t, client.rnic.InUse().MaxMR)
}

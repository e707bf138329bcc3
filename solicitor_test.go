package iwarp_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// newSolicitor makes a Solicitor that must be unused, with the window full, at the end of the test.
func newSolicitor(t testing.TB, cfg solicit.Config) *iwarp.Solicitor {
	s := iwarp.NewSolicitor(cfg)
	t.Cleanup(func() {
		require.NoError(t, s.Close(), "no QP uses it")
		stats := s.Stats()
		require.Zero(t, stats.Granted, "all grants are given back")
		require.Zero(t, stats.Queued)
		require.Zero(t, stats.Unidentified)
		require.LessOrEqual(t, stats.MaxGranted, max(cfg.Fixed, cfg.Max))
	})
	return s
}

// read returns a Read of n octets.
func (k *talk) read(id uint64, n int) iwarp.SendWR {
	return iwarp.SendWR{ID: id, Op: iwarp.OpRDMARead, Local: k.at(0, n), Remote: remote}
}

// asks requires the Read Request of n octets with this MSN on the wire.
func (k *talk) asks(expectation string, msn uint32, n int) {
	k.Helper()
	require.Equal(k, wiretest.ReadRequest(msn, k.mr.STag(), 0, uint32(n), remote.STag, remote.TO), k.p.Segment(), expectation)
}

// answers answers a Read of n octets.
func (k *talk) answers(n int) {
	k.Helper()
	for off := 0; off < n; off += 1024 {
		head := byte(0x81)
		if off+1024 >= n {
			head = 0xc1
		}
		k.p.Send(wiretest.ReadResponse(head, k.mr.STag(), uint64(off), string(make([]byte, min(1024, n-off)))))
	}
}

// idles makes sure that nothing is sent, and nothing completes.
func (k *talk) idles(expectation string) {
	k.Helper()
	k.p.WantIdle(expectation, time.Minute)
	k.wantNoCompletion(expectation)
}

// talks returns QPs with scripted peers that share a window.
func talks(t *testing.T, n int, cfg solicit.Config) (*iwarp.Solicitor, []*talk) {
	s := newSolicitor(t, cfg)
	var ks []*talk
	for range n {
		ks = append(ks, newTalk(t, iwarp.QPConfig{Solicitor: s}, nil))
	}
	return s, ks
}

func TestSOL_17_ReadsWaitForTheirWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, ks := talks(t, 2, solicit.Config{Fixed: 4096})
		a, b := ks[0], ks[1]
		a.posts(a.read(1, 1000), a.read(2, 3000))
		a.asks("both fit", 1, 1000)
		a.asks("both fit", 2, 3000)
		b.posts(b.read(3, 2000))
		b.idles("the third Read does not")
		require.Equal(t, int64(4000), s.Stats().Granted)
		require.Equal(t, 1, s.Stats().Queued)
		a.answers(1000)
		a.wantCompletions("the first", 1)
		b.idles("1096 octets are not enough")
		a.answers(3000)
		a.wantCompletions("the second", 2)
		b.asks("now there is room", 1, 2000)
		b.answers(2000)
		b.wantCompletions("the third", 3)
		require.Equal(t, iwarp.StateRTS, b.qp.State())

		stats := b.qp.Stats()
		require.EqualValues(t, 1, stats.ReadWaits)
		require.Equal(t, 2*time.Minute, stats.ReadWaitTime.Round(time.Second))
		require.Zero(t, a.qp.Stats().ReadWaits)
		require.Zero(t, s.Stats().Granted)
		require.NoError(t, a.qp.Abort())
		require.NoError(t, b.qp.Abort())
	})
}

// TestSOL_17_NoWindowIsNeeded: by work that brings no solicited octets, and by a Read that stands alone.
func TestSOL_17_NoWindowIsNeeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, ks := talks(t, 2, solicit.Config{Fixed: 64})
		a, b := ks[0], ks[1]
		a.posts(a.read(1, 64))
		a.asks("the window is used up", 1, 64)
		b.posts(
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead},
			iwarp.SendWR{ID: 3, Op: iwarp.OpFetchAdd, Remote: remote},
			iwarp.SendWR{ID: 4, Op: iwarp.OpSend},
			iwarp.SendWR{ID: 5, Op: iwarp.OpRDMAWrite, Local: b.at(0, 100), Remote: remote})
		for range 4 {
			b.p.Segment()
		}
		require.Zero(t, s.Stats().Queued)
		require.NoError(t, b.qp.Abort())
		require.NoError(t, a.qp.Abort())
	})
}

func TestSOL_18_AReadIsOneReadRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const most = 1 << 20
		_, ks := talks(t, 1, solicit.Config{Fixed: most})
		k := ks[0]
		_, mr := k.register(2*most, stag.LocalWrite, nil)
		long := iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, most)}, Remote: iwarp.RemoteBuffer{STag: 5, Len: 2 * most}}
		k.posts(long)
		require.Equal(t, wiretest.ReadRequest(1, mr.STag(), 0, most, 5, 0), k.p.Segment(), "however long it is")
		for _, op := range []iwarp.Op{iwarp.OpRDMARead, iwarp.OpRDMAReadInvalidate} {
			long.Op, long.Local[0].Len = op, most+1
			err := k.qp.PostSend(long)
			require.ErrorIs(t, err, iwarp.ErrLimit)
			require.ErrorContains(t, err, "an RDMA Read of 1048577 octets, the window of the Solicitor has at most 1048576")
		}
		require.Error(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead, Class: 2}), "a Class that there is not")
		require.Equal(t, iwarp.StateRTS, k.qp.State())
		require.NoError(t, k.qp.Abort())
	})
}

// TestSOL_19_OrderOnAQP: a Read that waits delays what follows it, but only on its QP.
func TestSOL_19_OrderOnAQP(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, ks := talks(t, 2, solicit.Config{Fixed: 4096})
		a, b := ks[0], ks[1]
		a.posts(a.read(1, 4096), iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
		a.asks("the first", 1, 4096)
		require.Equal(t, wiretest.Send(1, 0, ""), a.p.Segment(), "it does not wait for the answer")
		b.posts(
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend},
			b.read(4, 64),
			iwarp.SendWR{ID: 5, Op: iwarp.OpSend},
			b.read(6, 128),
			iwarp.SendWR{ID: 7, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
		require.Equal(t, wiretest.Send(1, 0, ""), b.p.Segment())
		b.wantCompletions("in front of the Read", 3)
		b.idles("the Read waits, and all behind it")
		a.answers(4096)
		a.wantCompletions("in order", 1, 2)
		b.asks("in order", 1, 64)
		require.Equal(t, wiretest.Send(2, 0, ""), b.p.Segment())
		b.asks("in order", 2, 128)
		b.answers(64)
		b.answers(128)
		require.Equal(t, wiretest.Send(3, 0, ""), b.p.Segment())
		b.wantCompletions("in order", 4, 5, 6, 7)
		require.NoError(t, a.qp.Abort())
		require.NoError(t, b.qp.Abort())
	})
}

func TestSOL_19_ClassesShareTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, ks := talks(t, 3, solicit.Config{Fixed: 4096, Strict: true})
		bulk := ks[1].read(2, 4096)
		bulk.Class = solicit.Bulk
		ks[0].posts(ks[0].read(1, 4096))
		ks[0].asks("the window is used up", 1, 4096)
		ks[1].posts(bulk)
		ks[2].posts(ks[2].read(3, 4096))
		ks[1].idles("both wait")
		ks[0].answers(4096)
		ks[2].asks("the urgent one is next, though it came later", 1, 4096)
		ks[1].idles("the other one waits on")
		ks[2].answers(4096)
		ks[1].asks("then it has its turn", 1, 4096)
		for _, k := range ks {
			require.NoError(t, k.qp.Abort())
		}
	})
}

func TestSOL_20_DispatchTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit = 20 * time.Millisecond
		s, ks := talks(t, 2, solicit.Config{Fixed: 4096, Dispatch: [2]time.Duration{limit, 0}})
		a, b := ks[0], ks[1]
		a.posts(a.read(1, 4096))
		a.asks("the window is used up", 1, 4096)
		b.posts(
			iwarp.SendWR{ID: 2, Op: iwarp.OpSend},
			iwarp.SendWR{ID: 3, Op: iwarp.OpRDMAReadInvalidate, Flags: iwarp.Unsignaled, Local: b.at(0, 64), Remote: remote},
			iwarp.SendWR{ID: 4, Op: iwarp.OpSend},
			b.read(5, 64),
			iwarp.SendWR{ID: 6, Op: iwarp.OpSend, Flags: iwarp.LocalFence})
		start := time.Now()
		wcs := b.completes(b.cq, 5)
		require.InDelta(t, 2*limit, time.Since(start), float64(time.Millisecond), "the second Read has a timeout of its own")
		require.Equal(t, []uint64{2, 3, 4, 5, 6}, ids(wcs))
		const ok = iwarp.StatusSuccess
		require.Equal(t, []iwarp.Status{ok, iwarp.StatusTimeout, ok, iwarp.StatusTimeout, ok}, statuses(wcs))
		for msn := range uint32(3) {
			require.Equal(t, wiretest.Send(msn+1, 0, ""), b.p.Segment(), "no Read Request was sent")
		}
		err := wcs[1].Err()
		require.ErrorIs(t, err, iwarp.ErrDispatchTimeout)
		require.NotErrorIs(t, err, net.ErrClosed)
		require.EqualError(t, err, "iwarp: RDMA Read with local Invalidate: dispatch timeout: no part of the Solicitor's window was free")
		require.Equal(t, iwarp.StateRTS, b.qp.State())
		require.True(t, b.mr.Valid(), "nothing was done for it")
		require.EqualValues(t, 2, s.Stats().Expired)
		require.EqualValues(t, 2, b.qp.Stats().ReadWaits)
		require.Zero(t, b.qp.Stats().Sent.ReadRequest)

		err = b.qp.RDMARead(testContext(t), b.mr.Slice(0, 64), remote)
		require.ErrorIs(t, err, iwarp.ErrDispatchTimeout, "a blocking helper")
		ctx, cancel := context.WithTimeout(context.Background(), limit*3/2)
		defer cancel()
		wcs, err = b.qp.Do(ctx, b.read(8, 64), b.read(9, 64))
		failsAt(t, err, 0, iwarp.ErrDispatchTimeout)
		require.Len(t, wcs, 1, "the context ended while the second one waited, which is not the first error")
		time.Sleep(limit)
		bulk := b.read(7, 64)
		bulk.Class = solicit.Bulk
		b.posts(bulk)
		b.idles("no timeout for Bulk")
		a.answers(4096)
		a.wantCompletions("what was sent does not expire", 1)
		b.asks("with the first MSN", 1, 64)
		b.answers(64)
		b.wantCompletions("and the QP goes on", 7)
		require.NoError(t, a.qp.Abort())
		require.NoError(t, b.qp.Abort())
	})
}

// TestReadForWhichTheQueueIsFull: it completes at once, in its order, and is not sent.
func TestReadForWhichTheQueueIsFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, ks := talks(t, 3, solicit.Config{Fixed: 4096, MaxQueue: 1})
		ks[0].posts(ks[0].read(1, 4096))
		ks[0].asks("the window is used up", 1, 4096)
		ks[1].posts(ks[1].read(2, 64))
		ks[1].idles("it waits")
		ks[2].posts(iwarp.SendWR{ID: 3, Op: iwarp.OpSend}, ks[2].read(4, 64), iwarp.SendWR{ID: 5, Op: iwarp.OpSend})
		start := time.Now()
		wcs := ks[2].completes(ks[2].cq, 3)
		require.Zero(t, time.Since(start))
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusTimeout, iwarp.StatusSuccess}, statuses(wcs))
		require.ErrorIs(t, wcs[1].Err(), iwarp.ErrDispatchTimeout)
		require.EqualValues(t, 1, s.Stats().QueueFull)
		ks[0].answers(4096)
		ks[1].asks("its turn", 1, 64)
		ks[1].answers(64)
		for msn := range uint32(2) {
			require.Equal(t, wiretest.Send(msn+1, 0, ""), ks[2].p.Segment(), "no Read Request was sent")
		}
		ks[2].posts(ks[2].read(6, 64))
		ks[2].asks("there is room again", 1, 64)
		for _, k := range ks {
			require.NoError(t, k.qp.Abort())
		}
	})
}

// TestSOL_20_ContextEndsTheWaiting: the helper's wait ends, and its Read goes on.
func TestSOL_20_ContextEndsTheWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, ks := talks(t, 2, solicit.Config{Fixed: 4096})
		a, b := ks[0], ks[1]
		a.posts(a.read(1, 4096))
		a.asks("the window is used up", 1, 4096)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.qp.RDMARead(ctx, b.mr.Slice(0, 64), remote), context.DeadlineExceeded)
		a.answers(4096)
		b.asks("it is still posted", 1, 64)
		b.answers(64)
		b.wantNoCompletion("for anyone")
		require.NoError(t, a.qp.Abort())
		require.NoError(t, b.qp.Abort())
	})
}

// TestSOL_21_EndOfAQPGivesAllBack: however it ends, with Reads that have started and with a Read that waits. A Read of
// another QP that waits behind it then starts.
func TestSOL_21_EndOfAQPGivesAllBack(t *testing.T) {
	for what, end := range map[string]func(k *talk){
		"Abort": func(k *talk) { require.NoError(k, k.qp.Abort()) },
		"RNIC":  func(k *talk) { require.NoError(k, k.rnic.Close()) },
		"Terminate": func(k *talk) {
			go func() { _ = k.qp.Terminate() }()
			k.wantTerminate("ours", 0x0000)
		},
		"an error": func(k *talk) {
			k.p.Send(wiretest.Send(1, 0, "x"), wiretest.Send(1, 0, "x"))
			k.wantTerminate("ours", 0x1203)
		},
		"the peer's": func(k *talk) {
			k.p.Send(wiretest.Terminate(0x0207, wiretest.NoHeader, nil))
			k.p.Close()
			<-k.qp.Done()
		},
		"a FIN": func(k *talk) { k.p.CloseWrite(); k.wantTerminate("work is outstanding", 0x0207) },
		"Close": func(k *talk) { require.Error(k, k.qp.Close()) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, ks := talks(t, 3, solicit.Config{Fixed: 4096})
				dies, holds, goesOn := ks[0], ks[1], ks[2]
				require.NoError(t, dies.qp.PostRecv(iwarp.RecvWR{ID: 99, Local: dies.at(0, 64)}))
				holds.posts(holds.read(1, 2048))
				holds.asks("it has started", 1, 2048)
				dies.posts(dies.read(2, 1000), dies.read(3, 1048), dies.read(4, 64))
				dies.asks("it has started", 1, 1000)
				dies.asks("it has started", 2, 1048)
				goesOn.posts(goesOn.read(5, 2000))
				goesOn.idles("it waits behind the third Read")
				end(dies)
				goesOn.asks("it has its turn", 1, 2000)
				require.EqualValues(t, 4048, s.Stats().Granted)
				require.Zero(t, s.Stats().Queued)
				require.NoError(t, holds.qp.Abort())
				require.NoError(t, goesOn.qp.Abort())
			})
		})
	}
}

// TestSOL_21_AQPThatEndsWaitsNoLonger: from the beginning of its end, although its peer does not end its half for a
// while.
func TestSOL_21_AQPThatEndsWaitsNoLonger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, ks := talks(t, 3, solicit.Config{Fixed: 4096})
		ks[0].posts(ks[0].read(1, 4000))
		ks[0].asks("the window is used up", 1, 4000)
		ks[1].posts(ks[1].read(2, 4096))
		ks[2].posts(ks[2].read(3, 64))
		ks[2].idles("its turn comes later")
		go func() { _ = ks[1].qp.Terminate() }()
		ks[1].p.WantTerminate("the peer is told", 0)
		synctest.Wait()
		require.Equal(t, iwarp.StateTerminate, ks[1].qp.State(), "the peer is silent")
		start := time.Now()
		ks[2].asks("nothing is in front of it any more", 1, 64)
		require.Zero(t, time.Since(start))
		require.Zero(t, s.Stats().Queued)
		ks[1].p.Close()
		for _, k := range ks {
			_ = k.qp.Abort()
		}
	})
}

// TestSOL_21_DrainAndClose: a QP that ends gracefully waits for its turn.
func TestSOL_21_DrainAndClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSolicitor(t, solicit.Config{Fixed: 4096})
		a := newTalk(t, iwarp.QPConfig{Solicitor: s}, nil)
		client, server := connect(t, pairConfig{network: "pipe", client: iwarp.QPConfig{Solicitor: s}})
		_, sm := server.register(64, stag.RemoteRead, nil)
		_, cm := client.register(64, stag.LocalWrite, nil)
		a.posts(a.read(1, 4096))
		a.asks("the window is used up", 1, 4096)
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{cm.Slice(0, 64)}, Remote: sm.Advertise(0, 64)}))
		drained := make(chan error, 1)
		go func() { drained <- client.qp.Drain(context.Background()) }()
		synctest.Wait()
		require.Empty(t, drained)
		closed := make(chan error, 1)
		go func() { closed <- client.qp.Close() }()
		synctest.Wait()
		require.Empty(t, closed)
		a.answers(4096)
		require.NoError(t, <-drained)
		require.NoError(t, <-closed)
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess}, statuses(client.completes(client.qp.SendCQ(), 1)))
		require.NoError(t, a.qp.Abort())
	})
}

// TestSOL_21_SolicitorIsInUse: it can be closed when its QPs have ended, and then serves no others.
func TestSOL_21_SolicitorIsInUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := iwarp.NewSolicitor(solicit.Config{})
		k := newTalk(t, iwarp.QPConfig{Solicitor: s}, nil)
		require.EqualError(t, s.Close(), "iwarp: close Solicitor: still in use by 1 queue pairs")
		require.NoError(t, k.qp.Abort())
		require.NoError(t, s.Close())
		before := k.rnic.InUse()
		for _, bad := range []*iwarp.Solicitor{s, iwarp.NewSolicitor(solicit.Config{Fixed: 1}), {}} {
			_, err := k.rnic.NewQP(&iwarp.QPConfig{PD: k.pd, Solicitor: bad})
			require.ErrorContains(t, err, "Solicitor")
			require.Equal(t, before, k.rnic.InUse(), "the QP has taken nothing")
		}
		require.NoError(t, k.mr.Close())
		require.NoError(t, k.pd.Close())
	})
}

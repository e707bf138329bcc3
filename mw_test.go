package iwarp_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

const lendable = stag.LocalWrite | stag.MWBind

// lends binds a new window to n octets of mr, and waits until it is bound.
func (s *side) lends(qp *iwarp.QP, mr *iwarp.MR, off, n int, access stag.Access, to uint64) *iwarp.MW {
	s.Helper()
	mw, err := s.pd.AllocMW()
	require.NoError(s, err)
	s.binds(qp, mw, mr.Slice(off, n), access, to)
	return mw
}

func (s *side) binds(qp *iwarp.QP, mw *iwarp.MW, sge iwarp.SGE, access stag.Access, to uint64) {
	s.Helper()
	_, err := doOne(testContext(s.T), qp, iwarp.SendWR{Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{sge}, Access: access, Remote: iwarp.RemoteBuffer{TO: to}})
	require.NoError(s, err)
}

// TestVERBS_15_30_WindowIsLentAndGivenBack: again and again, by Send with Invalidate.
func TestVERBS_15_30_WindowIsLentAndGivenBack(t *testing.T) {
	for _, network := range []string{"pipe", "tcp"} {
		t.Run(network, func(t *testing.T) {
			owner, user := connect(t, pairConfig{network: network})
			ctx := testContext(t)
			mem, mr := owner.register(4096, lendable, nil)
			mw, err := owner.pd.AllocMW()
			require.NoError(t, err)
			require.Zero(t, mw.Len())
			require.Zero(t, mw.Advertise(0, 1), "it names nothing yet")
			inbox, msg := user.register(iwarp.RemoteBufferLen, stag.LocalWrite, nil)
			src, srcMR := user.register(100, 0, nil)
			var keys []uint8
			for i := range 3 {
				fillRandom(src)
				src[0] = byte(i)
				// The Bind and the Send that announces it are posted one after the other.
				require.NoError(t, owner.qp.PostSend(iwarp.SendWR{
					Op: iwarp.OpBind, Flags: iwarp.Unsignaled, MW: mw, Local: []iwarp.SGE{mr.Slice(1000*i, 100)},
					Access: stag.RemoteWrite | stag.RemoteRead, Remote: iwarp.RemoteBuffer{TO: uint64(i) << 40},
				}))
				keys = append(keys, mw.STag().Key())
				b, err := mw.Advertise(0, 100).AppendBinary(nil)
				require.NoError(t, err)
				require.NoError(t, owner.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: b}))

				_, err = user.qp.Recv(ctx, msg.Slice(0, iwarp.RemoteBufferLen))
				require.NoError(t, err)
				var lent iwarp.RemoteBuffer
				require.NoError(t, lent.UnmarshalBinary(inbox))
				require.Equal(t, uint64(i)<<40, lent.TO)
				require.NoError(t, user.qp.RDMAWrite(ctx, lent, srcMR.Slice(0, 100)))
				recv := make(chan error, 1)
				go func() {
					_, err := owner.qp.Recv(ctx, iwarp.SGE{})
					recv <- err
				}()
				_, err = doOne(ctx, user.qp, iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: lent.STag})
				require.NoError(t, err)
				require.NoError(t, <-recv)
				require.Equal(t, src, mem[1000*i:][:100], "what the peer wrote is where the window was")
				require.False(t, mw.Valid(), "and it has given the window back")
			}
			require.NotEqual(t, keys[0], keys[1], "each time under a new key")
			require.NotEqual(t, keys[1], keys[2])
			require.NoError(t, mw.Close())
			require.NoError(t, mw.Close(), "closing again does nothing")
			require.NoError(t, mr.Close())
			require.NoError(t, owner.qp.Close())
			require.Zero(t, owner.rnic.InUse().MaxMR, "all is given back")
		})
	}
}

// TestVERBS_27_30_WindowMovesToAnotherQP: an invalidated window belongs to its PD again, and can be bound to another QP.
func TestVERBS_27_30_WindowMovesToAnotherQP(t *testing.T) {
	owner, user := connect(t, pairConfig{network: "pipe"})
	first, firstPeer := owner.qp, user.qp
	owner.connect(user, pairConfig{network: "pipe"})
	second, secondPeer := owner.qp, user.qp
	ctx := testContext(t)
	mem, mr := owner.register(8, lendable, nil)
	octets, src := user.register(8, 0, nil)
	copy(octets, "moved on")

	mw := owner.lends(first, mr, 0, 8, stag.RemoteWrite, 0)
	_, err := doOne(ctx, first, iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MW: mw})
	require.NoError(t, err)
	owner.binds(second, mw, mr.Slice(0, 8), stag.RemoteWrite, 0)
	require.NoError(t, secondPeer.RDMAWrite(ctx, mw.Advertise(0, 8), src.Slice(0, 8)))
	require.NoError(t, secondPeer.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}), "the Read tells that the Write is placed")
	require.Equal(t, "moved on", string(mem))

	require.NoError(t, firstPeer.RDMAWrite(ctx, mw.Advertise(0, 8), src.Slice(0, 8)))
	<-first.Done()
	require.ErrorIs(t, first.Err(), iwarp.ErrAccess, "the first QP has lost it")
	require.Equal(t, iwarp.StateRTS, second.State())
	require.NoError(t, mw.Close())
}

// TestVERBS_26_BindThatIsRefused: the completion reports it, and the QP ends.
func TestVERBS_26_BindThatIsRefused(t *testing.T) {
	const n = 8
	for expectation, bad := range map[string]func(k *talk, wr *iwarp.SendWR){
		"out of bounds":                    func(_ *talk, wr *iwarp.SendWR) { wr.Local[0].Off = 1 },
		"nothing":                          func(_ *talk, wr *iwarp.SendWR) { wr.Local[0].Len = 0 },
		"no rights":                        func(_ *talk, wr *iwarp.SendWR) { wr.Access = 0 },
		"rights that are not a peer's":     func(_ *talk, wr *iwarp.SendWR) { wr.Access = stag.LocalWrite },
		"a TO that wraps":                  func(_ *talk, wr *iwarp.SendWR) { wr.Remote.TO = ^uint64(0) },
		"a region without MWBind":          func(k *talk, wr *iwarp.SendWR) { wr.Local[0].MR = k.mr },
		"a region that was only allocated": func(k *talk, wr *iwarp.SendWR) { wr.Local[0].MR, _ = k.pd.AllocMR(n, lendable, nil) },
		"writing what is only read": func(k *talk, wr *iwarp.SendWR) {
			_, wr.Local[0].MR = k.register(n, stag.MWBind, nil)
		},
		"a region of another PD": func(k *talk, wr *iwarp.SendWR) {
			pd, err := k.rnic.AllocPD()
			require.NoError(k, err)
			wr.Local[0].MR, err = pd.RegisterMR(make([]byte, n), lendable, nil)
			require.NoError(k, err)
		},
		"a window of another PD": func(k *talk, wr *iwarp.SendWR) {
			pd, err := k.rnic.AllocPD()
			require.NoError(k, err)
			wr.MW, err = pd.AllocMW()
			require.NoError(k, err)
		},
		"a region that was invalidated": func(k *talk, wr *iwarp.SendWR) {
			require.NoError(k, wr.Local[0].MR.Invalidate(context.Background()))
		},
		"a window that is bound": func(k *talk, wr *iwarp.SendWR) {
			k.binds(k.qp, wr.MW, wr.Local[0], stag.RemoteRead, 0)
		},
	} {
		t.Run(expectation, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				_, mr := k.register(n, lendable, nil)
				mw, err := k.pd.AllocMW()
				require.NoError(t, err)
				wr := iwarp.SendWR{ID: 1, Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{mr.Slice(0, n)}, Access: stag.RemoteWrite}
				bad(k, &wr)
				k.posts(wr, iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
				k.wantTerminate("it is this side's fault", 0x0000)
				wcs := k.completes(k.cq, 2)
				require.Equal(t, []iwarp.Status{iwarp.StatusBind, iwarp.StatusFlushed}, statuses(wcs))
				require.Equal(t, iwarp.OpBind, wcs[0].Op)
				require.NoError(t, wr.MW.Close(), "a window that is not in use any more can be closed")
			})
		})
	}
}

// TestVERBS_26_90_InvalidBind: a Bind that is invalid by itself is refused when it is posted.
func TestVERBS_26_90_InvalidBind(t *testing.T) {
	k, another := newTalk(t, iwarp.QPConfig{}, nil), newSide(t, nil)
	_, mr := k.register(8, lendable, nil)
	_, theirs := another.register(8, lendable, nil)
	mw, err := k.pd.AllocMW()
	require.NoError(t, err)
	other, err := another.pd.AllocMW()
	require.NoError(t, err)
	closed, err := k.pd.AllocMW()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	name := mw.STag()
	for _, c := range []struct {
		mw    *iwarp.MW
		local []iwarp.SGE
		is    error
	}{
		{nil, k.at(0, 8), nil},
		{mw, nil, nil},
		{mw, []iwarp.SGE{{Len: 8}}, nil},
		{mw, []iwarp.SGE{mr.Slice(0, 4), mr.Slice(4, 4)}, nil},
		{other, []iwarp.SGE{mr.Slice(0, 8)}, nil},
		{mw, []iwarp.SGE{theirs.Slice(0, 8)}, nil},
		{mw, []iwarp.SGE{mr.Slice(-1, 8)}, iwarp.ErrBounds},
		{mw, []iwarp.SGE{mr.Slice(0, -1)}, iwarp.ErrBounds},
		{closed, []iwarp.SGE{mr.Slice(0, 8)}, iwarp.ErrInvalidSTag},
	} {
		err := k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpBind, MW: c.mw, Local: c.local, Access: stag.RemoteRead})
		var post *iwarp.PostError
		require.ErrorAs(t, err, &post, "it is refused at once")
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
	}
	require.Equal(t, iwarp.StateRTS, k.qp.State())
	require.Equal(t, name, mw.STag(), "and nothing has changed")
	require.NoError(t, k.qp.Abort())
}

// TestVERBS_56_90_FullQueueChangesNoName: a Bind or Register without room in the queue leaves the STags as they were.
func TestVERBS_56_90_FullQueueChangesNoName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{SendDepth: 3}, nil)
		_, on := k.register(8, lendable, nil)
		mr, err := k.pd.AllocMR(8, stag.RemoteRead, nil)
		require.NoError(t, err)
		mw := k.lends(k.qp, on, 0, 8, stag.RemoteRead, 0)
		bound, registered := mw.STag(), mr.STag()
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpSend}, iwarp.SendWR{ID: 2, Op: iwarp.OpSend}, iwarp.SendWR{ID: 3, Op: iwarp.OpSend})
		for range 3 {
			k.p.Segment()
		}
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{on.Slice(0, 8)}, Access: stag.RemoteRead}), iwarp.ErrQueueFull)
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRegister, MR: mr, Memory: make([]byte, 8)}), iwarp.ErrQueueFull)
		require.Equal(t, bound, mw.STag())
		require.Equal(t, registered, mr.STag())
		require.Zero(t, mr.Len())
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_17_23_RegionWithWindowsStays: invalidating or closing it is refused, in
// every way.
func TestVERBS_17_23_RegionWithWindowsStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, mr := k.register(8, lendable, nil)
		mw := k.lends(k.qp, mr, 0, 8, stag.RemoteRead, 0)
		require.ErrorIs(t, mr.Invalidate(testContext(t)), iwarp.ErrWindowBound)
		require.ErrorIs(t, mr.Close(), iwarp.ErrWindowBound)
		require.True(t, mr.Valid(), "nothing has changed")
		require.NoError(t, mw.Invalidate(testContext(t)))
		require.NoError(t, mr.Invalidate(testContext(t)))
		require.NoError(t, mr.Close())

		_, mr = k.register(8, lendable, nil)
		k.binds(k.qp, mw, mr.Slice(0, 8), stag.RemoteRead, 0)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpLocalInvalidate, Invalidate: mr.STag()})
		k.wantTerminate("a local invalidate ends the QP", 0x0000)
		require.Equal(t, []iwarp.Status{iwarp.StatusBind}, statuses(k.completes(k.cq, 1)))
		require.NoError(t, mr.Close(), "and that has ended the window")
		require.NoError(t, mw.Close())
	})
}

// TestVERBS_32_QPWithWindowsIsNotClosed: unless it has ended already.
func TestVERBS_32_QPWithWindowsIsNotClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		owner, user := connect(t, pairConfig{network: "pipe"})
		_, mr := owner.register(8, lendable, nil)
		mw := owner.lends(owner.qp, mr, 0, 8, stag.RemoteRead, 0)
		require.ErrorIs(t, owner.qp.Close(), iwarp.ErrWindowBound)
		require.Equal(t, iwarp.StateRTS, owner.qp.State(), "nothing has changed")
		_, sink := user.register(8, stag.LocalWrite, nil)
		require.NoError(t, user.qp.RDMARead(testContext(t), sink.Slice(0, 8), mw.Advertise(0, 8)))
		require.NoError(t, user.qp.PostRecv(iwarp.RecvWR{}))
		require.NoError(t, owner.qp.Send(testContext(t)), "work goes on")
		require.NoError(t, mw.Invalidate(testContext(t)))
		require.NoError(t, owner.qp.Close())
	})
}

// TestWindowsEndWithTheirQP: however the QP ends. Then the window belongs to its PD again.
func TestWindowsEndWithTheirQP(t *testing.T) {
	for how, end := range map[string]func(owner, user *side) error{
		"Abort":               func(owner, _ *side) error { return owner.qp.Abort() },
		"closed by the peer":  func(_, user *side) error { return user.qp.Close() },
		"aborted by the peer": func(_, user *side) error { return user.qp.Abort() },
		"RNIC closed":         func(owner, _ *side) error { return owner.rnic.Close() },
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				owner, user := connect(t, pairConfig{network: "pipe"})
				_, mr := owner.register(8, lendable, nil)
				mw := owner.lends(owner.qp, mr, 0, 8, stag.RemoteRead, 0)
				require.NoError(t, end(owner, user))
				<-owner.qp.Done()
				synctest.Wait()
				require.False(t, mw.Valid())
				require.NoError(t, owner.qp.Close(), "closing a QP that has ended does nothing")
				require.NoError(t, mr.Close())
				require.NoError(t, mw.Close())
			})
		})
	}
}

// TestVERBS_10_AccessOfNoLengthIsNotChecked: whatever it names.
func TestVERBS_10_AccessOfNoLengthIsNotChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mw, err := k.pd.AllocMW()
		require.NoError(t, err)
		for i, st := range []stag.STag{0, mw.STag(), mw.STag() ^ 1, 0xffffffff} {
			k.p.Send(wiretest.Write(st, ^uint64(0), ""))
			k.p.Send(wiretest.ReadRequest(uint32(i+1), 5, 6, 0, st, ^uint64(0)))
			require.Equal(t, wiretest.ReadResponse(0xc1, 5, 6, ""), k.p.Segment(), "%v", st)
		}
		require.Equal(t, iwarp.StateRTS, k.qp.State())
		require.NoError(t, k.qp.Abort())
	})
}

// TestWindowsAreCounted: they count against MaxMR, and keep their PD.
func TestWindowsAreCounted(t *testing.T) {
	s := newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxMR: 2}})
	_, mr := s.register(8, lendable, nil)
	mw, err := s.pd.AllocMW()
	require.NoError(t, err)
	_, err = s.pd.AllocMW()
	require.ErrorIs(t, err, iwarp.ErrLimit)
	_, err = s.pd.AllocMR(8, 0, nil)
	require.ErrorIs(t, err, iwarp.ErrLimit)
	require.NoError(t, mr.Close())
	require.Error(t, s.pd.Close(), "a window is left")
	require.NoError(t, mw.Close())
	require.NoError(t, s.pd.Close())
	_, err = s.pd.AllocMW()
	require.Error(t, err)
}

// TestVERBS_33_SinkOfAReadIsNotThePeersToWrite: the sink needs only LocalWrite, and RDMA Writes to the STag in the Read
// Request are refused.
func TestVERBS_33_SinkOfAReadIsNotThePeersToWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mem, sink := k.register(8, stag.LocalWrite, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{sink.Slice(0, 4)}, Remote: remote})
		require.Equal(t, wiretest.ReadRequest(1, sink.STag(), 0, 4, remote.STag, remote.TO), k.p.Segment())
		k.p.Send(wiretest.ReadResponse(0xc1, sink.STag(), 0, "data"))
		k.wantCompletions("the Response is placed", 1)
		k.p.Send(wiretest.Write(sink.STag(), 0, "evil"))
		k.wantTerminate("a Write is not: 1/1/02", 0x1102)
		require.Equal(t, "data\x00\x00\x00\x00", string(mem))
	})
}

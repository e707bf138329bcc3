package iwarp_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestVERBS_1_13_15_20_RegisterReadInvalidate is the life of a buffer in a storage
// protocol: registered, filled by an RDMA Read and invalidated, all posted at once.
func TestVERBS_1_13_15_20_RegisterReadInvalidate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.AllocMR(64, stag.LocalWrite, nil)
		require.NoError(t, err)
		first := mr.STag()
		require.Zero(t, mr.Len())
		names := map[stag.STag]bool{first: true}
		for i := range uint32(3) {
			mem := make([]byte, 16)
			k.posts(
				iwarp.SendWR{ID: 1, Op: iwarp.OpRegister, MR: mr, Memory: mem, Access: stag.LocalWrite, Remote: iwarp.RemoteBuffer{TO: 1000}},
				iwarp.SendWR{ID: 2, Op: iwarp.OpRDMAReadInvalidate, Local: []iwarp.SGE{mr.Slice(4, 8)}, Remote: remote},
				iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Flags: iwarp.ReadFence})
			require.EqualValues(t, 16, mr.Len())
			require.Equal(t, first.Index(), mr.STag().Index(), "the index stays")
			require.False(t, names[mr.STag()], "the key is new")
			names[mr.STag()] = true
			require.Equal(t, wiretest.ReadRequest(i+1, mr.STag(), 1004, 8, remote.STag, remote.TO), k.p.Segment())
			k.p.Send(wiretest.ReadResponse(0xc1, mr.STag(), 1004, "the data"))
			require.Equal(t, wiretest.Send(i+1, 0, ""), k.p.Segment())
			k.wantCompletions("in order", 1, 2, 3)
			require.Equal(t, "\x00\x00\x00\x00the data\x00\x00\x00\x00", string(mem))
			require.False(t, mr.Valid(), "the sink is dead when the Read is complete")
		}
		require.NoError(t, mr.Close())
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_1_KeyOfTheCaller: of a region, of a registration by a work request, and of a
// window. The peer may know the STag before any of these.
func TestVERBS_1_KeyOfTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		key := func(n uint8) *uint8 { return &n }
		whole, err := k.pd.RegisterMR(make([]byte, 8), stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Key: key(0xa5)})
		require.NoError(t, err)
		require.Equal(t, uint8(0xa5), whole.STag().Key())

		mr, err := k.pd.AllocMR(8, stag.LocalWrite|stag.RemoteWrite, nil)
		require.NoError(t, err)
		mw, err := k.pd.AllocMW()
		require.NoError(t, err)
		index, indexMW := mr.STag()&^0xff, mw.STag()&^0xff
		_, lent := k.register(8, stag.LocalWrite|stag.MWBind, nil)
		for _, n := range []uint8{7, 0, 7} {
			mem := make([]byte, 8)
			k.posts(
				iwarp.SendWR{ID: 1, Op: iwarp.OpRegister, MR: mr, Memory: mem, Access: stag.LocalWrite | stag.RemoteWrite, Key: key(n)},
				iwarp.SendWR{ID: 2, Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{lent.Slice(0, 8)}, Access: stag.RemoteWrite, Key: key(n ^ 0xff)})
			k.wantCompletions("both are in force", 1, 2)
			require.Equal(t, index|stag.STag(n), mr.STag())
			require.Equal(t, indexMW|stag.STag(n^0xff), mw.STag())
			k.p.Send(wiretest.Write(index|stag.STag(n), 0, "written"))
			k.p.Send(wiretest.Write(indexMW|stag.STag(n^0xff), 0, "through"))
			synctest.Wait()
			require.Equal(t, "written\x00", string(mem))
			k.posts(iwarp.SendWR{ID: 3, Op: iwarp.OpLocalInvalidate, MR: mr}, iwarp.SendWR{ID: 4, Op: iwarp.OpLocalInvalidate, MW: mw})
			k.wantCompletions("and can be enabled again", 3, 4)
		}
		k.p.Send(wiretest.Write(index|7, 0, "late"))
		k.wantTerminate("the last one is invalid: 1/1/00", 0x1100)
	})
}

// TestVERBS_13_14_PeerUsesRegistrations: what it knew before the last registration is dead.
func TestVERBS_13_14_PeerUsesRegistrations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.AllocMR(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: k.qp})
		require.NoError(t, err)
		register := func(mem []byte) {
			_, err := doOne(testContext(t), k.qp, iwarp.SendWR{Op: iwarp.OpRegister, MR: mr, Memory: mem, Access: stag.LocalWrite | stag.RemoteWrite})
			require.NoError(t, err)
		}
		_, recv := k.register(1, stag.LocalWrite, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 9, Local: []iwarp.SGE{recv.Slice(0, 1)}}))
		first, second := make([]byte, 8), make([]byte, 8)
		register(first)
		old := mr.STag()
		k.p.Send(wiretest.Write(old, 0, "first"))
		k.p.Send(wiretest.Untagged(0x41, 0x44, uint32(old), 0, 1, 0, ""))
		wc := k.completes(k.cq, 1)[0]
		require.Equal(t, old, wc.STag, "the peer has invalidated it")
		register(second)
		k.p.Send(wiretest.Write(mr.STag(), 0, "second"))
		synctest.Wait()
		require.Equal(t, "first\x00\x00\x00", string(first))
		require.Equal(t, "second\x00\x00", string(second))
		k.p.Send(wiretest.Write(old, 0, "evil"))
		k.wantTerminate("the old name is invalid: 1/1/00", 0x1100)
		require.Equal(t, "first\x00\x00\x00", string(first))
		require.Equal(t, "second\x00\x00", string(second))
	})
}

// TestVERBS_12_14_RegisterThatIsRefused: the completion says why, and the QP ends.
func TestVERBS_12_14_RegisterThatIsRefused(t *testing.T) {
	const most = 8
	for expectation, bad := range map[string]func(k *talk, wr *iwarp.SendWR){
		"too long":                        func(_ *talk, wr *iwarp.SendWR) { wr.Memory = make([]byte, most+1) },
		"nothing":                         func(_ *talk, wr *iwarp.SendWR) { wr.Memory = nil },
		"a Buffer that is too long":       func(_ *talk, wr *iwarp.SendWR) { wr.Memory, wr.Buffer = nil, newDisk(most+1) },
		"an empty Buffer":                 func(_ *talk, wr *iwarp.SendWR) { wr.Memory, wr.Buffer = nil, newDisk(0) },
		"a remote right without the flag": func(_ *talk, wr *iwarp.SendWR) { wr.Access = stag.RemoteRead },
		"the right to bind":               func(_ *talk, wr *iwarp.SendWR) { wr.Access = stag.MWBind },
		"a right that is unknown":         func(_ *talk, wr *iwarp.SendWR) { wr.Access = 1 << 20 },
		"a TO that wraps":                 func(_ *talk, wr *iwarp.SendWR) { wr.Remote.TO = ^uint64(0) },
		"an STag that is VALID": func(k *talk, wr *iwarp.SendWR) {
			_, err := doOne(testContext(k.T), k.qp, *wr)
			require.NoError(k, err)
		},
		"a region of another PD": func(k *talk, wr *iwarp.SendWR) {
			pd, err := k.rnic.AllocPD()
			require.NoError(k, err)
			wr.MR, err = pd.AllocMR(most, stag.LocalWrite, nil)
			require.NoError(k, err)
		},
	} {
		t.Run(expectation, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				mr, err := k.pd.AllocMR(most, stag.LocalWrite, nil)
				require.NoError(t, err)
				wr := iwarp.SendWR{ID: 1, Op: iwarp.OpRegister, MR: mr, Memory: make([]byte, most), Access: stag.LocalWrite}
				bad(k, &wr)
				k.posts(wr, iwarp.SendWR{ID: 2, Op: iwarp.OpSend})
				k.wantTerminate("it is this side's fault", 0x0000)
				wcs := k.completes(k.cq, 2)
				require.Equal(t, []iwarp.Status{iwarp.StatusBind, iwarp.StatusFlushed}, statuses(wcs))
				require.Equal(t, iwarp.OpRegister, wcs[0].Op)
				require.NoError(t, wr.MR.Close())
			})
		})
	}
}

func TestInvalidRegister(t *testing.T) {
	k, other := newTalk(t, iwarp.QPConfig{}, nil), newSide(t, nil)
	mr, err := k.pd.AllocMR(8, 0, nil)
	require.NoError(t, err)
	theirs, err := other.pd.AllocMR(8, 0, nil)
	require.NoError(t, err)
	closed, err := k.pd.AllocMR(8, 0, nil)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	name := mr.STag()
	for _, wr := range []iwarp.SendWR{
		{Memory: make([]byte, 8)},
		{MR: k.mr, Memory: make([]byte, 8)},
		{MR: theirs, Memory: make([]byte, 8)},
		{MR: closed, Memory: make([]byte, 8)},
		{MR: mr, Memory: make([]byte, 8), Buffer: newDisk(8)},
		{MR: mr, Buffer: newDisk(-1)},
	} {
		wr.Op = iwarp.OpRegister
		var post *iwarp.PostError
		require.ErrorAs(t, k.qp.PostSend(wr), &post, "it is refused at once")
	}
	require.ErrorContains(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAReadInvalidate}), "no sink")
	mw, err := k.pd.AllocMW()
	require.NoError(t, err)
	require.ErrorContains(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MR: mr, MW: mw}), "one of")
	require.ErrorContains(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MW: mw, Invalidate: mw.STag()}), "one of")
	require.ErrorContains(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MR: theirs}), "another RNIC")
	require.NoError(t, mw.Close())
	require.Equal(t, iwarp.StateRTS, k.qp.State())
	require.Equal(t, name, mr.STag(), "and nothing has changed")

	_, err = k.pd.AllocMR(-1, 0, nil)
	require.Error(t, err)
	_, err = k.pd.AllocMR(0, 0, nil)
	require.Error(t, err)
	_, err = k.pd.AllocMR(8, stag.RemoteWrite, nil)
	require.Error(t, err)
	_, err = k.pd.AllocMR(8, 0, &iwarp.MROptions{BaseTO: 1})
	require.Error(t, err)
	require.NoError(t, k.qp.Abort())
	require.Equal(t, 2, k.rnic.InUse().MaxMR, "nothing is left over")
}

// A sizing is a Buffer whose Size runs code of the test.
type sizing struct {
	*disk
	before func()
}

func (b sizing) Size() int64 {
	b.before()
	return b.disk.Size()
}

// TestVERBS_90_SizeOfABufferIsAskedUnderNoLock: Size may wait for another goroutine, which posts to the same QP.
func TestVERBS_90_SizeOfABufferIsAskedUnderNoLock(t *testing.T) {
	near, far := newSide(t, nil), newSide(t, nil)
	asked := 0
	waits := func(qp *iwarp.QP) iwarp.SendWR {
		mr, err := near.pd.AllocMR(8, stag.LocalWrite, nil)
		require.NoError(t, err)
		return iwarp.SendWR{Op: iwarp.OpRegister, MR: mr, Access: stag.LocalWrite, Buffer: sizing{newDisk(8), func() {
			asked++
			posted := make(chan error, 1)
			go func() { posted <- qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite}) }()
			select {
			case err := <-posted:
				require.NoError(t, err)
			case <-time.After(10 * time.Second):
				t.Error("the other goroutine cannot post")
			}
		}}}
	}
	near.connect(far, pairConfig{client: iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
		return qp.PostSend(waits(qp))
	}}})
	require.NoError(t, near.qp.PostSend(waits(near.qp), iwarp.SendWR{Op: iwarp.OpRDMAWrite}, waits(near.qp)))
	ctx := testContext(t)
	_, err := near.qp.Do(ctx, waits(near.qp))
	require.NoError(t, err)
	require.Equal(t, 4, asked, "once each")
}

// TestVERBS_90_EachRegionHasTheSizeOfItsBuffer, even if the list is posted before there is a connection, or in parts.
func TestVERBS_90_EachRegionHasTheSizeOfItsBuffer(t *testing.T) {
	near, far := newSide(t, nil), newSide(t, nil)
	var mrs []*iwarp.MR
	list := func(sizes ...int) (wrs []iwarp.SendWR) {
		for _, n := range sizes {
			mr, err := near.pd.AllocMR(64, stag.LocalWrite, nil)
			require.NoError(t, err)
			mrs = append(mrs, mr)
			wrs = append(wrs, iwarp.SendWR{Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: mr, Access: stag.LocalWrite, Buffer: newDisk(n)})
		}
		return wrs
	}
	early := list(8, 24, 16)
	near.connect(far, pairConfig{client: iwarp.QPConfig{SendDepth: 3, Setup: func(_ context.Context, qp *iwarp.QP) error {
		return qp.PostSend(early...)
	}}})
	ctx := testContext(t)
	require.NoError(t, near.qp.Drain(ctx))
	require.NoError(t, near.qp.PostSend(list(40, 32, 48)...))
	_, err := near.qp.Do(ctx, list(9, 10, 11, 12, 13)...)
	require.NoError(t, err)
	var sizes []int
	for _, mr := range mrs {
		sizes = append(sizes, int(mr.Len()))
	}
	require.Equal(t, []int{8, 24, 16, 40, 32, 48, 9, 10, 11, 12, 13}, sizes)
}

// TestVERBS_90_SizeThatPanicsLeavesNothingBehind: neither a slot, nor a place of the PD.
func TestVERBS_90_SizeThatPanicsLeavesNothingBehind(t *testing.T) {
	const depth = 2
	near, _ := connect(t, pairConfig{client: iwarp.QPConfig{SendDepth: depth}})
	mr, err := near.pd.AllocMR(8, stag.LocalWrite, nil)
	require.NoError(t, err)
	bad := sizing{newDisk(8), func() { panic("no size") }}
	wr := iwarp.SendWR{Op: iwarp.OpRegister, MR: mr, Access: stag.LocalWrite, Buffer: bad}
	ctx := testContext(t)
	for range depth {
		require.PanicsWithValue(t, "no size", func() { _ = near.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite}, wr) })
		require.PanicsWithValue(t, "no size", func() { _, _ = near.qp.Do(ctx, wr) })
		require.PanicsWithValue(t, "no size", func() { _, _ = near.pd.RegisterBuffer(bad, stag.LocalWrite, nil) })
	}
	require.Equal(t, 1, near.rnic.InUse().MaxMR)
	require.NoError(t, near.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite}, iwarp.SendWR{Op: iwarp.OpRDMAWrite}), "all slots are free")
}

// TestNoNewWorkNamesAnMRThatIsBeingClosed: it is refused when it is posted, as for any other MR, and the QP goes on.
func TestNoNewWorkNamesAnMRThatIsBeingClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.AllocMR(8, stag.LocalWrite, nil)
		require.NoError(t, err)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRegister, MR: mr, Memory: make([]byte, 8), Access: stag.LocalWrite},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, 8)}, Remote: remote})
		k.wantCompletions("it is registered", 1)
		require.Equal(t, wiretest.ReadRequest(1, mr.STag(), 0, 8, remote.STag, remote.TO), k.p.Segment())
		closed := make(chan error, 1)
		go func() { closed <- mr.Close() }()
		synctest.Wait()
		more := iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 8)}}
		require.ErrorIs(t, k.qp.PostSend(more), iwarp.ErrInvalidSTag, "Close waits for the Read")
		k.p.Send(wiretest.ReadResponse(0xc1, mr.STag(), 0, "the data"))
		k.wantCompletions("which is performed", 2)
		require.NoError(t, <-closed)
		require.ErrorIs(t, k.qp.PostSend(more), iwarp.ErrInvalidSTag)
		require.Equal(t, iwarp.StateRTS, k.qp.State())
		require.NoError(t, k.qp.Abort())
	})
}

// TestNoNewWorkNamesAnMRThatIsClosedBeforeItsRegistration, which is still queued: Close waits for the registration, and for no work after it.
func TestNoNewWorkNamesAnMRThatIsClosedBeforeItsRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.AllocMR(8, stag.LocalWrite, nil)
		require.NoError(t, err)
		send := iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 8)}}
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRegister, Flags: iwarp.ReadFence, MR: mr, Memory: make([]byte, 8)},
			send)
		k.p.Segment()
		closed := make(chan error, 1)
		go func() { closed <- mr.Close() }()
		synctest.Wait()
		require.ErrorIs(t, k.qp.PostSend(send), iwarp.ErrInvalidSTag)
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		require.Equal(t, wiretest.Send(1, 0, string(make([]byte, 8))), k.p.Segment())
		k.wantCompletions("what was posted before is done", 1, 2, 3)
		require.NoError(t, <-closed)
		require.ErrorIs(t, k.qp.PostSend(send), iwarp.ErrInvalidSTag)
		require.NoError(t, k.qp.Abort())
	})
}

// TestVERBS_24_RegionIsInvalidatedBeforeItsWork: an OpRegister, or what names the region, that is
// still queued when the region is invalidated fails in its turn.
func TestVERBS_24_RegionIsInvalidatedBeforeItsWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.AllocMR(8, stag.LocalWrite, nil)
		require.NoError(t, err)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead},
			iwarp.SendWR{ID: 2, Op: iwarp.OpRegister, Flags: iwarp.ReadFence, MR: mr, Memory: make([]byte, 8)},
			iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 8)}})
		k.p.Segment()
		require.NoError(t, mr.Invalidate(testContext(t)))
		k.p.Send(wiretest.ReadResponse(0xc1, 0, 0, ""))
		k.wantTerminate("what was revoked is not registered", 0x0000)
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess, iwarp.StatusBind, iwarp.StatusFlushed}, statuses(k.completes(k.cq, 3)))
		require.False(t, mr.Valid())
	})
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.AllocMR(8, stag.LocalWrite, nil)
		require.NoError(t, err)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpRegister, MR: mr, Memory: make([]byte, 8)},
			iwarp.SendWR{ID: 2, Op: iwarp.OpLocalInvalidate, MR: mr})
		k.wantCompletions("registered and invalidated", 1, 2)
		k.posts(iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 8)}})
		k.wantTerminate("a source that is INVALID ends the QP", 0x0000)
		require.Equal(t, []iwarp.Status{iwarp.StatusLocalProtection}, statuses(k.completes(k.cq, 1)))
	})
}

// TestBuffersAreRegionsEverywhere: what takes memory takes a disk.
func TestBuffersAreRegionsEverywhere(t *testing.T) {
	const n = 3 << 10
	near, far := connect(t, pairConfig{network: "pipe", client: iwarp.QPConfig{MPA: iwarp.MPAOptions{MaxULPDU: 1000}}})
	ctx := testContext(t)
	disks := map[string]*disk{}
	registered := func(s *side, name string, access stag.Access) *iwarp.MR {
		disks[name] = newDisk(n)
		mr, err := s.pd.RegisterBuffer(disks[name], access, nil)
		require.NoError(t, err)
		return mr
	}
	source, sink := registered(near, "source", 0), registered(near, "sink", stag.LocalWrite)
	target, recv := registered(far, "target", anyRemote|stag.MWBind), registered(far, "receive", stag.LocalWrite)
	fillRandom(disks["source"].octets)
	want := disks["source"].octets

	require.NoError(t, near.qp.RDMAWrite(ctx, target.Advertise(0, n), source.Slice(0, n)))
	require.NoError(t, near.qp.RDMARead(ctx, sink.Slice(0, n), target.Advertise(0, n)))
	require.Equal(t, want, disks["target"].octets, "source and target of a Write")
	require.Equal(t, want, disks["sink"].octets, "source and sink of a Read")

	received := make(chan error, 1)
	go func() {
		_, err := far.qp.Recv(ctx, recv.Slice(0, n))
		received <- err
	}()
	require.NoError(t, near.qp.Send(ctx, source.Slice(0, n)))
	require.NoError(t, <-received)
	require.Equal(t, want, disks["receive"].octets, "a receive")

	mw := far.lends(far.qp, target, 100, n-200, stag.RemoteRead|stag.RemoteWrite, 77)
	require.NoError(t, near.qp.RDMARead(ctx, sink.Slice(0, n-200), mw.Advertise(0, n-200)))
	require.Equal(t, want[100:n-100], disks["sink"].octets[:n-200], "a window")
	require.NoError(t, near.qp.RDMAWrite(ctx, mw.Advertise(10, 20), source.Slice(0, 20)))

	disks["fast"] = newDisk(n)
	mr, err := near.pd.AllocMR(n, stag.LocalWrite, nil)
	require.NoError(t, err)
	_, err = doOne(ctx, near.qp, iwarp.SendWR{Op: iwarp.OpRegister, MR: mr, Buffer: disks["fast"], Access: stag.LocalWrite})
	require.NoError(t, err)
	require.NoError(t, near.qp.RDMARead(ctx, mr.Slice(0, 30), target.Advertise(100, 30)))
	require.Equal(t, want[100:110], disks["fast"].octets[:10], "fast registration")
	require.Equal(t, want[:20], disks["fast"].octets[10:30])
}

// A disk is a Buffer that is kept in memory.
type disk struct {
	size   int64
	octets []byte
}

func newDisk(n int) *disk { return &disk{int64(n), make([]byte, max(n, 0))} }

func (d *disk) Size() int64 { return d.size }

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, d.octets[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) { return copy(d.octets[off:], p), nil }

// TestVERBS_90_RefusedPostsUseNoKeys: a program may post a Register, or a Bind, again and again until the queue has room. The
// STags of the last 128 registrations stay unused all the same.
func TestVERBS_90_RefusedPostsUseNoKeys(t *testing.T) {
	client, _ := connect(t, pairConfig{client: iwarp.QPConfig{SendDepth: 1}})
	ctx := testContext(t)
	_, mr := client.register(8, stag.MWBind, nil)
	fast, err := client.pd.AllocMR(8, stag.LocalWrite, nil)
	require.NoError(t, err)
	window, err := client.pd.AllocMW()
	require.NoError(t, err)
	for _, wr := range []iwarp.SendWR{
		{Op: iwarp.OpRegister, MR: fast, Memory: make([]byte, 8)},
		{Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{mr.Slice(0, 8)}, Access: stag.RemoteRead},
	} {
		used := make(map[stag.STag]bool)
		for range 120 {
			require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite}))
			for range 150 {
				require.ErrorIs(t, client.qp.PostSend(wr), iwarp.ErrQueueFull)
			}
			_, err := client.qp.SendCQ().Wait(ctx, make([]iwarp.WC, 1))
			require.NoError(t, err)
			_, err = client.qp.Do(ctx, wr)
			require.NoError(t, err)
			s := fast.STag()
			if wr.Op == iwarp.OpBind {
				s = window.STag()
			}
			require.False(t, used[s], "%v: %v again after %d registrations", wr.Op, s, len(used))
			used[s] = true
			require.NoError(t, client.qp.LocalInvalidate(ctx, s))
		}
	}
}

// TestVERBS_90_RefusedPostsBeforeAConnectionUseNoKeys: nor do those to a QP that is not connected.
func TestVERBS_90_RefusedPostsBeforeAConnectionUseNoKeys(t *testing.T) {
	s := newSide(t, nil)
	idle := func(depth int) *iwarp.QP {
		qp, err := s.rnic.NewQP(&iwarp.QPConfig{PD: s.pd, SendDepth: depth})
		require.NoError(t, err)
		t.Cleanup(func() { qp.Abandon(errors.New("not connected")) })
		return qp
	}
	full, empty := idle(1), idle(121)
	require.NoError(t, full.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite}))
	fast, err := s.pd.AllocMR(8, stag.LocalWrite, nil)
	require.NoError(t, err)
	wr := iwarp.SendWR{Op: iwarp.OpRegister, MR: fast, Memory: make([]byte, 8)}
	used := make(map[stag.STag]bool)
	for range 120 {
		for range 150 {
			require.ErrorIs(t, full.PostSend(wr), iwarp.ErrQueueFull)
		}
		require.NoError(t, empty.PostSend(wr))
		require.False(t, used[fast.STag()], "%v again after %d registrations", fast.STag(), len(used))
		used[fast.STag()] = true
	}
	wr.MR = nil
	require.Error(t, empty.PostSend(wr))
	require.Equal(t, 120, empty.Slots(), "what is refused takes no room")
}

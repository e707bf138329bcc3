package model

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// identify requests a page.
func (l *line) identify(m capsule.Identify) []byte {
	l.w.t.Helper()
	l.ok(l.ask(m.SQE(l.next(), l.at(capsule.PageSize))))
	return l.data
}

// fields checks values at offsets of a page. All other octets must be zero.
func fields(t *testing.T, page []byte, want map[int]any) {
	t.Helper()
	page = append([]byte(nil), page...)
	for off, v := range want {
		var b []byte
		if s, text := v.(string); text {
			b = []byte(s)
		} else {
			var err error
			b, err = binary.Append(nil, binary.LittleEndian, v)
			require.NoError(t, err)
		}
		require.Equal(t, b, page[off:off+len(b)], "offset %d", off)
		clear(page[off : off+len(b)])
	}
	require.Equal(t, make([]byte, len(page)), page, "all other octets are zero")
}

func spaces(s string, n int) string {
	for len(s) < n {
		s += " "
	}
	return s
}

func TestNVME_43_IOController(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	page := l.identify(capsule.Identify{CNS: capsule.CNSController})
	d, err := capsule.ParseIdentifyController(page)
	require.NoError(t, err)
	require.NoError(t, d.CheckHost(1))
	require.Len(t, d.SN, 20)
	fields(t, page, map[int]any{
		4: d.SN, 24: spaces("goiwarp", 40), 64: spaces("1.0", 8),
		72: uint8(6), 76: uint8(2), 77: uint8(8), 78: uint16(1), 80: uint32(0x10300), 92: uint32(0x100), 96: uint32(0x41),
		111: uint8(1), 258: uint8(3), 259: uint8(3), 260: uint8(3), 261: uint8(6), 320: uint16(10),
		512: uint8(0x66), 513: uint8(0x44), 514: uint16(128), 516: uint32(1024), 520: uint16(0x0D), 525: uint8(7),
		536: uint32(0x100005), 540: uint32(1024), 768: storage, 1792: uint32(260), 1796: uint32(1), 1803: uint8(1),
	})
}

func TestNVME_43_DiscoveryController(t *testing.T) {
	w := newWorld(t)
	l := w.admin(hostA, idA, capsule.DiscoveryNQN)
	page := l.identify(capsule.Identify{CNS: capsule.CNSController})
	d, err := capsule.ParseIdentifyController(page)
	require.NoError(t, err)
	require.NoError(t, d.CheckHost(1))
	fields(t, page, map[int]any{
		4: d.SN, 24: spaces("goiwarp", 40), 64: spaces("1.0", 8),
		78: uint16(1), 80: uint32(0x10300), 92: uint32(0x80000000), 96: uint32(0x01), 111: uint8(2), 259: uint8(3),
		261: uint8(4), 320: uint16(10), 514: uint16(128), 536: uint32(0x100005), 768: capsule.DiscoveryNQN, 1803: uint8(1),
	})
}

// TestNVME_43_Capabilities: the target advertises what all namespaces support. The serial number stays the same after a
// restart.
func TestNVME_43_Capabilities(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Compare, c.InCapsule = false, 8192 })
	durable := namespace(1)
	durable.Volatile, durable.Trims = false, false
	w.add(durable)
	l := w.ready()
	d, err := capsule.ParseIdentifyController(l.identify(capsule.Identify{CNS: capsule.CNSController}))
	require.NoError(t, err)
	require.Equal(t, uint16(capsule.ONCSWriteZeroes), d.ONCS)
	require.Zero(t, d.VWC)
	require.Equal(t, uint64(8192), d.InCapsuleSize())
	again := newWorld(t).ready()
	e, err := capsule.ParseIdentifyController(again.identify(capsule.Identify{CNS: capsule.CNSController}))
	require.NoError(t, err)
	require.Equal(t, d.SN, e.SN)
}

func TestNVME_44_Namespace(t *testing.T) {
	w := newWorld(t)
	small := namespace(2)
	small.Geometry = capsule.Geometry{LBADS: 9, Blocks: 0x1234}
	small.ReadOnly, small.TrimmedZeroes, small.Granularity = true, false, 4096
	w.add(small)
	large := namespace(1)
	large.NGUID = [16]byte{0xAB, 15: 0xCD}
	w.add(large)
	l := w.ready()
	fields(t, l.identify(capsule.Identify{NSID: 1}), map[int]any{
		0: uint64(1000), 8: uint64(1000), 16: uint64(1000), 30: uint8(1), 33: uint8(9), 104: large.NGUID, 130: uint8(12),
	})
	fields(t, l.identify(capsule.Identify{NSID: 2}), map[int]any{
		0: uint64(0x1234), 8: uint64(0x1234), 16: uint64(0x1234), 24: uint8(0x10), 30: uint8(1),
		64: [5]uint16{7, 7, 7, 7, 7}, 99: uint8(1), 130: uint8(9),
	})
	for _, inactive := range []uint32{3, 1024} {
		fields(t, l.identify(capsule.Identify{NSID: inactive}), nil)
	}
	for _, none := range []uint32{0, 1025, capsule.BroadcastNSID} {
		l.refused(capsule.StatusInvalidNamespace, 0, l.ask(capsule.Identify{NSID: none}.SQE(l.next(), l.at(4096))))
	}
}

func TestNVME_45_NamespaceList(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.NamespaceCount = 3000 })
	for nsid := uint32(2); nsid < 2500; nsid += 2 {
		w.add(namespace(nsid))
	}
	l := w.ready()
	list := func(after uint32) []uint32 {
		t.Helper()
		ids, err := capsule.ParseNamespaceList(nil, l.identify(capsule.Identify{NSID: after, CNS: capsule.CNSNamespaceList}), after)
		require.NoError(t, err)
		return ids
	}
	ids := list(0)
	require.Len(t, ids, 1024)
	require.Equal(t, []uint32{2, 2048}, []uint32{ids[0], ids[1023]})
	require.Len(t, list(2048), 1249-1024)
	require.Equal(t, []uint32{2498}, list(2497))
	require.Empty(t, list(2498))
	require.Empty(t, list(0xFFFFFFFD))
	for _, after := range []uint32{0xFFFFFFFE, 0xFFFFFFFF} {
		c := capsule.Identify{NSID: after, CNS: capsule.CNSNamespaceList}.SQE(l.next(), l.at(4096))
		l.refused(capsule.StatusInvalidNamespace, 0, l.ask(c))
	}
}

func TestNVME_46_Descriptors(t *testing.T) {
	w := newWorld(t)
	cfg := namespace(1)
	cfg.NGUID = [16]byte{9}
	w.add(cfg)
	w.add(namespace(2))
	l := w.ready()
	for nsid, nguid := range map[uint32][16]byte{1: {9}, 2: {}} {
		d, err := capsule.ParseDescriptors(l.identify(capsule.Identify{NSID: nsid, CNS: capsule.CNSDescriptors}))
		require.NoError(t, err)
		require.Equal(t, &capsule.Descriptors{UUID: namespace(nsid).UUID, NGUID: nguid}, d)
	}
	for _, nsid := range []uint32{0, 3, capsule.BroadcastNSID} {
		c := capsule.Identify{NSID: nsid, CNS: capsule.CNSDescriptors}.SQE(l.next(), l.at(4096))
		l.refused(capsule.StatusInvalidNamespace, 0, l.ask(c))
	}
	// Ids are unique, also in other subsystems.
	out, err := w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.other"}, nil)
	w.must(out, err)
	_, _, err = w.target.AddNamespace("nqn.other", namespace(1), nil)
	require.ErrorIs(t, err, ErrExists)
}

func TestNVME_47_CommandSetAndOthers(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	fields(t, l.identify(capsule.Identify{CNS: capsule.CNSCommandSet}), map[int]any{4: uint32(1 << 30 / 4096)})
	small := namespace(1)
	small.Geometry.LBADS = 9
	w.add(small)
	w.add(namespace(2))
	fields(t, l.identify(capsule.Identify{CNS: capsule.CNSCommandSet}), map[int]any{4: uint32(1 << 30 / 4096)})
	c := capsule.Identify{CNS: capsule.CNSCommandSet, CSI: 2}.SQE(l.next(), l.at(4096))
	l.refused(capsule.StatusInvalidField, 0, l.ask(c))
	for _, cns := range []uint8{4, 5, 7, 0x10, 0xFF} {
		l.refused(capsule.StatusInvalidField, 0, l.ask(capsule.Identify{CNS: cns}.SQE(l.next(), l.at(4096))))
	}
	for _, n := range []int{0, 4095, 4097, 8192} {
		c := capsule.Identify{CNS: capsule.CNSController}.SQE(l.next(), l.at(n))
		l.refused(capsule.StatusInvalidSGLLength, 0, l.ask(c))
	}
}

// TestNVME_57_Abort: a command that no back end has begun is aborted.
func TestNVME_57_Abort(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	l := admin.io(1)
	w.hold[DoFetch], w.hold[DoExecute] = true, true
	abort := func(sqid, cid uint16, want uint32) {
		t.Helper()
		before := len(admin.answers)
		admin.send(capsule.Abort{SQID: sqid, CID: cid}.SQE(admin.next()))
		r := admin.answers[len(admin.answers)-1]
		require.Greater(t, len(admin.answers), before)
		require.Equal(t, capsule.Success, r.Status)
		require.Equal(t, want, r.DW0)
	}
	for _, c := range []capsule.SQE{l.read(0, 1), l.rw(capsule.OpWrite, 0, 1)} {
		l.send(c)
		abort(1, c.CID, 0)
		require.Equal(t, capsule.StatusAbortRequested, l.answers[len(l.answers)-1].Status)
		require.True(t, l.last.Response.Invalidate)
		abort(1, c.CID, capsule.AbortFailed)
		a := w.goOn()
		require.False(t, a.Queue.Begin(a.Ref))
	}
	l.send(l.read(0, 1))
	running := w.goOn()
	require.True(t, running.Queue.Begin(running.Ref))
	abort(1, l.cid, capsule.AbortFailed)
	w.do(running.Queue.Finish(running.Ref, capsule.Success, nil))
	l.ok(l.answers[len(l.answers)-1])
	for _, sqid := range []uint16{1, 2, 65, 0xFFFF} {
		abort(sqid, 9999, capsule.AbortFailed)
	}
}

// TestNVME_57_AbortedCommandsAreBounded: as many aborted commands as the queue has entries may wait for a busy back end.
// After that, no more are aborted until one of them was found to be.
func TestNVME_57_AbortedCommandsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	l := admin.io(1)
	w.hold[DoExecute] = true
	aborts := func() bool {
		l.send(l.read(0, 1))
		return admin.ask(capsule.Abort{SQID: 1, CID: l.cid}.SQE(admin.next())).DW0 == 0
	}
	for range l.q.depth {
		require.True(t, aborts())
	}
	require.False(t, aborts())
	late := w.goOn()
	require.False(t, late.Queue.Begin(late.Ref))
	require.True(t, aborts())
	require.False(t, aborts())
	late = w.goOn()
	require.Empty(t, late.Queue.Finish(late.Ref, capsule.StatusBusy, nil), "it had waited for too long")
	require.True(t, aborts())
}

// TestNVME_57_AbortWhileFetching: a command whose data is being fetched ends when the data has come: its key is in use
// until then.
func TestNVME_57_AbortWhileFetching(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	l := admin.io(1)
	w.hold[DoFetch] = true
	l.send(l.rw(capsule.OpWrite, 0, 1))
	a := w.goOn()
	require.True(t, a.Queue.Begin(a.Ref))
	r := admin.ask(capsule.Abort{SQID: 1, CID: l.cid}.SQE(admin.next()))
	require.Zero(t, r.DW0)
	require.Len(t, l.answers, 1)
	w.do(a.Queue.Fetched(w.now, a.Ref, make([]byte, lba), nil))
	require.Equal(t, capsule.StatusAbortRequested, l.answers[1].Status)
	require.Empty(t, w.ops)
}

func TestNVME_57_AbortOfAnEventRequest(t *testing.T) {
	l := newWorld(t).ready()
	l.send(capsule.AsyncEventSQE(31))
	l.send(capsule.Abort{CID: 31}.SQE(l.next()))
	require.Empty(t, l.open)
	require.Equal(t, capsule.StatusAbortRequested, l.answers[len(l.answers)-2].Status)
	require.Empty(t, l.q.ctrl.requests)
}

func TestNVME_58_UnknownAndEarly(t *testing.T) {
	w := newWorld(t)
	l := w.admin(hostA, idA, storage)
	bare := func(op int) capsule.SQE {
		return capsule.SQE{Opcode: capsule.Opcode(op), Flags: capsule.FlagSGL, CID: l.next(), SGL: capsule.NullSGL()}
	}
	for op := range 256 {
		if o := capsule.Opcode(op); o != capsule.OpFabrics && o != capsule.OpKeepAlive {
			l.refused(capsule.StatusSequenceError, 0, l.ask(bare(op)))
		}
	}
	l.ok(l.ask(capsule.KeepAliveSQE(l.next())))
	l.identify(capsule.Identify{CNS: capsule.CNSController})
	l.refused(capsule.StatusSequenceError, 0, l.ask(capsule.Identify{CNS: capsule.CNSNamespaceList}.SQE(l.next(), l.at(4096))))
	l.enable()
	for op := range 256 {
		if o := capsule.Opcode(op); o != capsule.OpFabrics && adminCommands[o] == nil {
			l.refused(capsule.StatusInvalidOpcode, 0, l.ask(bare(op)))
		}
	}
	l.refused(capsule.StatusSequenceError, 0, l.ask(capsule.Disconnect{}.SQE(l.next())))
}

func TestNVME_59_DiscoveryControllers(t *testing.T) {
	w := newWorld(t)
	l := w.admin(hostA, idA, capsule.DiscoveryNQN)
	l.enable()
	q := w.arrive(hostA, idA, 1, 32)
	q.refused(capsule.StatusSequenceError, 0, q.connect(capsule.DiscoveryNQN, l.cntlid()))
	for _, lid := range []uint8{capsule.LogFirmware, capsule.LogChangedNamespaces, capsule.LogEffects} {
		l.refused(capsule.StatusInvalidOpcode, 0, l.ask(capsule.NewGetLogPage(lid, 0, 512, true).SQE(l.next(), l.at(512))))
	}
	l.refused(capsule.StatusInvalidOpcode, 0, l.ask(capsule.Identify{CNS: capsule.CNSNamespaceList}.SQE(l.next(), l.at(4096))))
	l.refused(capsule.StatusInvalidOpcode, 0, l.ask(capsule.Abort{}.SQE(l.next())))
	for _, fid := range []uint8{capsule.FeatureQueues, capsule.FeatureVWC, capsule.FeatureHostID} {
		l.refused(capsule.StatusInvalidOpcode, 0, l.ask(capsule.GetFeatures{FID: fid}.SQE(l.next(), capsule.NullSGL())))
	}
	for _, lid := range []uint8{capsule.LogError, capsule.LogSMART} {
		l.ok(l.ask(capsule.NewGetLogPage(lid, 0, 512, true).SQE(l.next(), l.at(512))))
		require.Equal(t, make([]byte, 512), l.data)
	}
	io := newWorld(t).ready()
	io.refused(capsule.StatusInvalidLogPage, 0, io.ask(capsule.NewGetLogPage(capsule.LogDiscovery, 0, 1024, true).SQE(io.next(), io.at(1024))))
}

// TestNVME_84_Disconnect: Disconnect ends an I/O queue after its response.
func TestNVME_84_Disconnect(t *testing.T) {
	w := newWorld(t)
	admin := w.ready()
	l := admin.io(1)
	format := capsule.Disconnect{RecFmt: 1}
	l.refused(capsule.StatusConnectFormat, 0, l.ask(format.SQE(l.next())))
	l.ok(l.ask(capsule.Disconnect{}.SQE(l.next())))
	require.True(t, l.last.Last)
	require.True(t, l.gone)
	admin.io(1)
}

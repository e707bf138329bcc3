package model

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// log reads n octets of a log.
func (l *line) log(lid uint8, off uint64, n int, rae bool) []byte {
	l.w.t.Helper()
	l.ok(l.ask(capsule.NewGetLogPage(lid, off, uint32(n), rae).SQE(l.next(), l.at(n))))
	return l.data
}

func (l *line) changed(rae bool) []uint32 {
	l.w.t.Helper()
	ids, all, err := capsule.ParseChangedNamespaces(nil, l.log(capsule.LogChangedNamespaces, 0, 4096, rae))
	require.NoError(l.w.t, err)
	require.False(l.w.t, all)
	return ids
}

func (l *line) setFeature(fid uint8, v uint32) capsule.CQE {
	l.w.t.Helper()
	return l.ask(capsule.SetFeatures{FID: fid, Value: v}.SQE(l.next(), capsule.NullSGL()))
}

func (l *line) feature(fid uint8) uint32 {
	l.w.t.Helper()
	r := l.ask(capsule.GetFeatures{FID: fid}.SQE(l.next(), capsule.NullSGL()))
	l.ok(r)
	return r.DW0
}

func TestNVME_48_LogLengths(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MDTS = 9 })
	l := w.ready()
	firmware := l.log(capsule.LogFirmware, 0, 1024, true)
	fields(t, firmware, map[int]any{0: uint8(1), 8: spaces("1.0", 8)})
	require.Equal(t, firmware[8:512], l.log(capsule.LogFirmware, 8, 504, true))
	require.Equal(t, make([]byte, 64), l.log(capsule.LogFirmware, 512, 64, true))
	require.Len(t, l.log(capsule.LogError, 0, 4096, false), 4096)
	require.Len(t, l.log(capsule.LogEffects, 0, 1<<20, false), 1<<20)
	effects := l.log(capsule.LogEffects, 0, 4096, false)
	require.Equal(t, []byte{3, 0, 0, 0}, effects[1024+4*1:][:4], "Write")
	require.Equal(t, []byte{1, 0, 0, 0}, effects[4*6:][:4], "Identify")
	require.Equal(t, []byte{0, 0, 0, 0}, effects[:4])
	for op := range 256 {
		require.Equal(t, adminCommands[capsule.Opcode(op)] != nil, effects[4*op] == 1, "admin command %#x, in fillEffects", op)
	}

	refuse := func(want capsule.Status, lid uint8, off uint64, n uint32, sgl int) {
		t.Helper()
		c := capsule.NewGetLogPage(lid, off, n, true).SQE(l.next(), l.at(sgl))
		l.refused(want, 0, l.ask(c))
	}
	refuse(capsule.StatusInvalidField, capsule.LogSMART, 516, 512, 512)
	refuse(capsule.StatusInvalidField, capsule.LogSMART, 2, 512, 512)
	refuse(capsule.StatusInvalidField, capsule.LogSMART, 1<<63, 512, 512)
	refuse(capsule.StatusInvalidField, capsule.LogSMART, 0, 1<<20+4, 1<<20+4)
	refuse(capsule.StatusInvalidSGLLength, capsule.LogSMART, 0, 512, 508)
	refuse(capsule.StatusInvalidSGLLength, capsule.LogSMART, 0, 512, 516)
	for _, lid := range []uint8{0, 6, 0x0C, 0x71, 0xFF} {
		refuse(capsule.StatusInvalidLogPage, lid, 0, 512, 512)
	}
	huge := capsule.NewGetLogPage(capsule.LogSMART, 0, 0, true) // 2^32 dwords
	require.Equal(t, uint64(1)<<34, huge.Length())
	l.refused(capsule.StatusInvalidField, 0, l.ask(huge.SQE(l.next(), l.at(1<<24-4))))
}

// TestNVME_48_LogWithinMDTS: a log read moves no more than a command may.
func TestNVME_48_LogWithinMDTS(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MDTS = 1 })
	l := w.ready()
	l.log(capsule.LogError, 0, 8192, true)
	c := capsule.NewGetLogPage(capsule.LogError, 0, 8196, true).SQE(l.next(), l.at(8196))
	l.refused(capsule.StatusInvalidField, 0, l.ask(c))
}

func TestNVME_49_SMART(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	l := admin.io(1)
	smart := func() capsule.SMART {
		t.Helper()
		s, err := capsule.ParseSMART(admin.log(capsule.LogSMART, 0, 512, true))
		require.NoError(t, err)
		return s
	}
	require.Equal(t, capsule.SMART{Temperature: 300, Spare: 100, SpareThreshold: 10}, smart())
	l.ok(l.ask(l.read(0, 125))) // 512000 octets
	require.Equal(t, uint64(1), smart().UnitsRead)
	l.ok(l.ask(l.read(0, 1)))
	l.ok(l.ask(l.rw(capsule.OpWrite, 0, 1)))
	l.ok(l.ask(l.rw(capsule.OpWriteZeroes, 0, 1)))
	l.refused(capsule.StatusLBAOutOfRange, 0, l.ask(l.read(1000, 1)))
	w.status = capsule.StatusReadError
	l.refused(capsule.StatusReadError, 0, l.ask(l.read(0, 1)))
	got := smart()
	require.Equal(t, []uint64{2, 2, 1, 1}, []uint64{got.UnitsRead, got.Reads, got.UnitsWritten, got.Writes})
}

func TestNVME_50_Queues(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.IOQueues = 8 })
	l := w.ready()
	require.Equal(t, uint32(0x70007), l.feature(capsule.FeatureQueues))
	for asked, want := range map[uint32]uint32{0: 0, 0x30003: 0x30003, 0x3FFFE: 0x30003, 0x70002: 0x20002, 0xFFFEFFFE: 0x70007} {
		r := l.setFeature(capsule.FeatureQueues, asked)
		l.ok(r)
		require.Equal(t, want, r.DW0)
		require.Equal(t, want, l.feature(capsule.FeatureQueues))
	}
	l.refused(capsule.StatusInvalidField, 0, l.setFeature(capsule.FeatureQueues, 0xFFFF))
	l.refused(capsule.StatusInvalidField, 0, l.setFeature(capsule.FeatureQueues, 0xFFFF0000))
	q := l.io(1)
	l.refused(capsule.StatusSequenceError, 0, l.setFeature(capsule.FeatureQueues, 0))
	q.lose()
	l.ok(l.setFeature(capsule.FeatureQueues, 0))
}

func TestNVME_51_Cache(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	l.refused(capsule.StatusInvalidField, 0, l.setFeature(capsule.FeatureVWC, 0)) // there is no cache
	n := w.add(namespace(1))
	require.Equal(t, uint32(1), l.feature(capsule.FeatureVWC))
	l.ok(l.setFeature(capsule.FeatureVWC, 1))
	require.Empty(t, w.ops)
	l.ok(l.setFeature(capsule.FeatureVWC, 0))
	require.Equal(t, Op{Kind: OpFlush, Namespaces: []*Namespace{n}}, w.ops[0])
	require.Zero(t, l.feature(capsule.FeatureVWC))
	w.status = capsule.StatusWriteFault
	l.refused(capsule.StatusWriteFault, 0, l.setFeature(capsule.FeatureVWC, 0))
	require.Zero(t, l.feature(capsule.FeatureVWC), "the host was told so before")
	w.status = capsule.Success
	l.ok(l.setFeature(capsule.FeatureVWC, 0))
	require.Len(t, w.ops, 3)
	l.ok(l.setFeature(capsule.FeatureVWC, 1))
	require.Equal(t, uint32(1), l.feature(capsule.FeatureVWC))
	require.Len(t, w.ops, 3)
}

// TestNVME_51_CacheOffTwice: the second command does not report success while the first one still waits.
func TestNVME_51_CacheOffTwice(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	w.hold[DoExecute] = true
	answers := len(l.answers)
	for range 2 {
		l.send(capsule.SetFeatures{FID: capsule.FeatureVWC}.SQE(l.next(), capsule.NullSGL()))
	}
	require.Len(t, l.answers, answers, "neither has been flushed")
	require.Len(t, w.held, 2)
}

func TestNVME_52_Features(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	r := l.setFeature(capsule.FeatureAsyncEvents, 0xFFFFFFFF)
	l.ok(r)
	require.Equal(t, capsule.NoticeNamespaces, r.DW0)
	require.Equal(t, capsule.NoticeNamespaces, l.feature(capsule.FeatureAsyncEvents))
	require.Equal(t, uint32(4294967000), roundKATO(4294967295), "without a wrap")
	for ms, want := range map[uint32]uint32{2000: 2000, 2001: 3000, 1: 1000, 0: 0, 600000: 600000} {
		l.ok(l.setFeature(capsule.FeatureKATO, ms))
		require.Equal(t, want, l.feature(capsule.FeatureKATO))
	}
	for _, ms := range []uint32{600001, 0xFFFFFFFF} {
		l.refused(capsule.StatusInvalidKATO, 0, l.setFeature(capsule.FeatureKATO, ms))
	}
	save := capsule.SetFeatures{FID: capsule.FeatureKATO, Save: true}
	l.refused(capsule.StatusFeatureNotSaveable, 0, l.ask(save.SQE(l.next(), capsule.NullSGL())))
	l.refused(capsule.StatusSequenceError, 0, l.setFeature(capsule.FeatureHostID, 0))
	l.refused(capsule.StatusInvalidField, 0, l.setFeature(0x02, 0))

	get := func(fid, sel uint8, value uint32, n int) capsule.CQE {
		return l.ask(capsule.GetFeatures{FID: fid, Select: sel, Value: value}.SQE(l.next(), l.at(n)))
	}
	for fid, want := range map[uint8]uint32{
		capsule.FeatureAsyncEvents: 0, capsule.FeatureKATO: 0, capsule.FeatureQueues: 0x3F003F,
	} {
		r := get(fid, capsule.SelectDefault, 0, 0)
		l.ok(r)
		require.Equal(t, want, r.DW0)
	}
	l.refused(capsule.StatusInvalidField, 0, get(capsule.FeatureKATO, 2, 0, 0))
	l.refused(capsule.StatusInvalidField, 0, get(capsule.FeatureKATO, 3, 0, 0))
	l.refused(capsule.StatusInvalidField, 0, get(0x02, 0, 0, 0))
	l.ok(get(capsule.FeatureHostID, 0, 1, 16))
	require.Equal(t, idA[:], l.data)
	l.refused(capsule.StatusInvalidField, 0, get(capsule.FeatureHostID, 0, 0, 16))
	l.refused(capsule.StatusInvalidSGLLength, 0, get(capsule.FeatureHostID, 0, 1, 8))
}

// listen enables namespace events, and parks requests with the CIDs from 1000 on.
func (l *line) listen(requests int) {
	l.w.t.Helper()
	l.ok(l.setFeature(capsule.FeatureAsyncEvents, capsule.NoticeNamespaces))
	for i := range requests {
		l.send(capsule.AsyncEventSQE(uint16(1000 + i)))
	}
}

// isEvent reports whether the last answer is an event.
func (l *line) isEvent(cid uint16, dw0 uint32) {
	l.w.t.Helper()
	r := l.answers[len(l.answers)-1]
	require.Equal(l.w.t, capsule.Success, r.Status)
	require.Equal(l.w.t, []uint32{uint32(cid), dw0}, []uint32{uint32(r.CID), r.DW0})
}

func TestNVME_53_Events(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	l.listen(4)
	l.refused(capsule.StatusAsyncEventLimit, 0, l.ask(capsule.AsyncEventSQE(2000)))
	n := len(l.answers)
	w.add(namespace(2))
	l.isEvent(1000, 0x00040002)
	w.add(namespace(1)) // masked
	require.Len(t, l.answers, n+1)
	require.Equal(t, []uint32{1, 2}, l.changed(true))
	w.add(namespace(3))
	require.Len(t, l.answers, n+2, "still masked: the log was read with RAE")
	require.Equal(t, []uint32{1, 2, 3}, l.changed(false))
	require.Empty(t, l.changed(false))
	w.must(w.target.RemoveNamespace(storage, 3, nil))
	l.isEvent(1001, 0x00040002)
	require.Equal(t, []uint32{3}, l.changed(false))
}

// TestNVME_53_NoneIsLost: an event waits while no request is parked or events are disabled. The rest of a partial read
// is reported again.
func TestNVME_53_NoneIsLost(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	w.add(namespace(1))
	l.send(capsule.AsyncEventSQE(7))
	l.send(capsule.AsyncEventSQE(8))
	require.Len(t, l.open, 2)
	l.ok(l.setFeature(capsule.FeatureAsyncEvents, capsule.NoticeNamespaces))
	l.isEvent(7, 0x00040002)
	w.add(namespace(2))
	l.log(capsule.LogChangedNamespaces, 0, 4, false) // the first one of two
	l.isEvent(8, 0x00040002)
	require.Equal(t, []uint32{1, 2}, l.changed(false))
	w.add(namespace(3))
	require.Empty(t, l.open)
	l.send(capsule.AsyncEventSQE(9))
	l.isEvent(9, 0x00040002)
}

// TestNVME_53_TooManyChanges: more changes than a log holds become one entry, which stands for all.
func TestNVME_53_TooManyChanges(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.NamespaceCount = 2000 })
	l := w.ready()
	for nsid := uint32(1); nsid <= 1030; nsid++ {
		w.add(namespace(nsid))
	}
	_, all, err := capsule.ParseChangedNamespaces(nil, l.log(capsule.LogChangedNamespaces, 0, 4096, false))
	require.NoError(t, err)
	require.True(t, all)
	require.Empty(t, l.changed(false))
}

func TestNVME_54_NamespaceEvents(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	l.listen(3)
	w.add(namespace(1))
	l.isEvent(1000, 0x00040002)
	require.Equal(t, []uint32{1}, l.changed(false))
	larger := namespace(1)
	larger.Geometry.Blocks = 2000
	_, out, err := w.target.ReplaceNamespace(storage, larger, nil)
	w.must(out, err)
	l.isEvent(1001, 0x00040002)
	require.Equal(t, []uint32{1}, l.changed(false))
	q := l.io(1)
	q.ok(q.ask(q.read(1999, 1)))
	w.must(w.target.RemoveNamespace(storage, 1, nil))
	l.isEvent(1002, 0x00040002)
	q.refused(capsule.StatusInvalidNamespace, 0, q.ask(q.read(0, 1)))
}

// TestNVME_54_WrongNamespaces: impossible configurations are refused, and nothing changes.
func TestNVME_54_WrongNamespaces(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	for _, change := range []func(*NamespaceConfig){
		func(c *NamespaceConfig) { c.NSID = 0 },
		func(c *NamespaceConfig) { c.NSID = 1025 },
		func(c *NamespaceConfig) { c.NSID = 1 },
		func(c *NamespaceConfig) { c.UUID = [16]byte{} },
		func(c *NamespaceConfig) { c.UUID = namespace(1).UUID },
		func(c *NamespaceConfig) { c.Geometry.LBADS = 8 },
		func(c *NamespaceConfig) { c.Geometry.LBADS = 17 },
		func(c *NamespaceConfig) { c.Geometry.Blocks = 0 },
		func(c *NamespaceConfig) { c.Geometry.Blocks = 1 << 51 },
		func(c *NamespaceConfig) { c.Granularity = 1 << 30 },
	} {
		cfg := namespace(2)
		change(&cfg)
		_, _, err := w.target.AddNamespace(storage, cfg, nil)
		require.Error(t, err)
	}
	_, _, err := w.target.AddNamespace("nqn.none", namespace(2), nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, _, err = w.target.ReplaceNamespace(storage, namespace(2), nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = w.target.RemoveNamespace(storage, 2, nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = w.target.RemoveSubsystem(capsule.DiscoveryNQN, nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = w.target.AddSubsystem(SubsystemConfig{NQN: storage}, nil)
	require.ErrorIs(t, err, ErrExists)
	_, err = w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.x", Serial: "more than twenty octets"}, nil)
	require.Error(t, err)
	require.Empty(t, l.changed(true))
}

// TestNVME_55_KeepAlive: any command on any queue counts as Keep Alive. If none comes for the timeout, everything ends,
// and no write starts.
func TestNVME_55_KeepAlive(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.arrive(hostA, idA, 0, 32)
	admin.ok(admin.connect(storage, capsule.AnyController, func(m *capsule.Connect, _ *capsule.ConnectData) { m.KATO = 4500 }))
	admin.enable()
	l := admin.io(1)
	require.Equal(t, 5*time.Second, w.tick(0))
	w.tick(4 * time.Second)
	l.ok(l.ask(l.read(0, 1)))
	require.Equal(t, 9*time.Second, w.tick(4*time.Second))
	admin.ok(admin.ask(capsule.KeepAliveSQE(admin.next())))
	w.tick(5*time.Second - 1)
	require.Empty(t, w.closed)
	l.ok(l.ask(l.read(0, 1)))

	w.hold[DoExecute] = true
	l.send(l.rw(capsule.OpWrite, 0, 1))
	l.send(l.rw(capsule.OpWrite, 1, 1))
	started, waiting := w.goOn(), w.goOn()
	require.True(t, started.Queue.Begin(started.Ref))
	answers := len(l.answers)
	require.Equal(t, Never, w.tick(5*time.Second))
	require.Equal(t, []*line{admin, l}, w.closed)
	require.False(t, waiting.Queue.Begin(waiting.Ref))
	require.Empty(t, started.Queue.Finish(started.Ref, capsule.Success, nil))
	require.Len(t, l.answers, answers)
	require.True(t, admin.q.ctrl.csts().CFS)
	late := w.arrive(hostA, idA, 1, 32)
	late.refused(capsule.StatusConnectParameter, 0x10010, late.connect(storage, 1))
}

// TestNVME_55_LongestTimeouts: the longest timeouts are not rounded up, which would mean none: a Connect may request
// them.
func TestNVME_55_LongestTimeouts(t *testing.T) {
	for ms, want := range map[uint32]time.Duration{
		4294966000: 4294966 * time.Second, 4294966001: 4294967 * time.Second,
		4294967000: 4294967 * time.Second, 4294967001: 4294967 * time.Second, math.MaxUint32: 4294967 * time.Second,
	} {
		w := newWorld(t)
		l := w.arrive(hostA, idA, 0, 32)
		l.ok(l.connect(storage, capsule.AnyController, func(m *capsule.Connect, _ *capsule.ConnectData) { m.KATO = ms }))
		require.Equal(t, want, w.tick(0), "KATO %d", ms)
		w.tick(want - 1)
		require.False(t, l.isClosed())
		w.tick(1)
		require.True(t, l.isClosed())
	}
}

func TestNVME_56_NoKeepAlive(t *testing.T) {
	w := newWorld(t)
	io := w.ready()
	disc := w.admin(hostA, idA, capsule.DiscoveryNQN)
	require.Equal(t, 120*time.Second, w.tick(0))
	w.tick(120*time.Second - 1)
	require.Empty(t, w.closed)
	w.tick(1)
	require.Equal(t, []*line{disc}, w.closed)
	w.tick(1000 * time.Hour)
	require.False(t, io.isClosed())
	io.ok(io.setFeature(capsule.FeatureKATO, 1000))
	w.tick(time.Second)
	require.True(t, io.isClosed())
}

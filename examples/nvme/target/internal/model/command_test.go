package model

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestNVME_15_Flags(t *testing.T) {
	w, l := storageLine(t)
	for flags := range 256 {
		c := l.read(0, 1)
		c.Flags = uint8(flags)
		if c.Flags != capsule.FlagSGL {
			l.refused(capsule.StatusInvalidField, 0, l.ask(c))
		}
	}
	require.Empty(t, w.ops)
}

// TestNVME_16_CIDs: all 16 bits of a CID come back. A CID that is outstanding is refused, and its first command goes on.
func TestNVME_16_CIDs(t *testing.T) {
	w, l := storageLine(t)
	for _, cid := range []uint16{0, 0xFFFF, 0xF01F, 0x101F} {
		c := l.read(0, 1)
		c.CID = cid
		l.ok(l.ask(c))
	}
	w.hold[DoExecute] = true
	for _, cid := range []uint16{0xFFFF, 0xF01F, 0x101F} { // of the same hash
		c := l.read(0, 1)
		c.CID = cid
		l.send(c)
	}
	twice := l.read(0, 1)
	twice.CID = 0xF01F
	l.refused(capsule.StatusCIDConflict, 0, l.ask(twice))
	first := w.goOn()
	w.act(w.goOn())
	twice.CID = 0xFFFF
	l.refused(capsule.StatusCIDConflict, 0, l.ask(twice))
	w.act(first)
	w.act(w.goOn())
	require.Empty(t, l.open)
	require.Len(t, w.ops, 7)
}

// TestNVME_21_InCapsule: the data in a capsule ends with the capsule.
func TestNVME_21_InCapsule(t *testing.T) {
	w, l := storageLine(t)
	write := capsule.RW{Opcode: capsule.OpWrite, NSID: 1}
	data := bytes.Repeat([]byte{7}, lba)
	l.ok(l.ask(write.SQE(l.next(), capsule.InCapsuleSGL(0, lba)), data...))
	require.Equal(t, data, w.ops[0].Octets)
	for _, c := range []struct {
		off uint64
		n   uint32
	}{{1, lba}, {0, lba + 1}, {lba + 1, 0}, {1<<64 - 1, lba}, {1<<64 - lba, lba}} {
		l.refused(capsule.StatusInvalidSGLOffset, 0, l.ask(write.SQE(l.next(), capsule.InCapsuleSGL(c.off, c.n)), data...))
	}
	l.refused(capsule.StatusInvalidSGLLength, 0, l.ask(write.SQE(l.next(), capsule.InCapsuleSGL(1, lba-1)), data...))
	require.Len(t, w.ops, 1)
}

func TestNVME_22_InCapsuleToTheHost(t *testing.T) {
	_, l := storageLine(t)
	read := capsule.RW{Opcode: capsule.OpRead, NSID: 1}
	l.refused(capsule.StatusInvalidField, 0,
		l.ask(read.SQE(l.next(), capsule.InCapsuleSGL(0, lba)), make([]byte, lba)...))
	admin := newWorld(t).ready()
	identify := capsule.Identify{CNS: capsule.CNSController}
	admin.refused(capsule.StatusInvalidField, 0, admin.ask(identify.SQE(admin.next(), capsule.InCapsuleSGL(0, 16)), data16...))
}

var data16 = make([]byte, 16)

// TestNVME_23_InCapsuleOff: when in-capsule data is off, only Connect can have data in the capsule.
func TestNVME_23_InCapsuleOff(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.InCapsule = 0 })
	w.add(namespace(1))
	admin := w.ready()
	admin.ok(admin.ask(capsule.Identify{CNS: capsule.CNSController}.SQE(admin.next(), admin.at(4096))))
	d, err := capsule.ParseIdentifyController(admin.data)
	require.NoError(t, err)
	require.Zero(t, d.InCapsuleSize())
	require.Equal(t, uint32(4), d.IOCCSZ)
	l := admin.io(1) // its Connect is keyed
	write := capsule.RW{Opcode: capsule.OpWrite, NSID: 1}
	l.refused(capsule.StatusInvalidSGLOffset, 0,
		l.ask(write.SQE(l.next(), capsule.InCapsuleSGL(0, lba)), make([]byte, lba)...))
	trim := capsule.DSM{NSID: 1, AD: true}
	l.refused(capsule.StatusInvalidSGLOffset, 0,
		l.ask(trim.SQE(l.next(), capsule.InCapsuleSGL(0, 16)), data16...))
}

func TestNVME_24_ShortMessages(t *testing.T) {
	for n := range capsule.SQESize {
		w := newWorld(t)
		l := w.arrive(hostA, idA, 0, 32)
		w.do(l.q.Command(0, make([]byte, n), nil))
		require.True(t, l.isClosed())
		require.Empty(t, l.answers)
		require.Empty(t, l.q.Command(0, make([]byte, 64), nil), "nothing follows")
	}
}

// TestNVME_27_Invalidate: the key of each command that requests it is invalidated, with any status. No other key is.
func TestNVME_27_Invalidate(t *testing.T) {
	_, l := storageLine(t)
	form := func(c capsule.SQE) (bool, uint32) {
		t.Helper()
		l.ask(c)
		return l.last.Response.Invalidate, l.last.Response.STag
	}
	for _, slba := range []uint64{0, 1000} {
		for _, op := range []capsule.Opcode{capsule.OpRead, capsule.OpWrite} {
			c := l.rw(op, slba, 1)
			inv, stag := form(c)
			require.True(t, inv)
			require.Equal(t, c.SGL.Key(), stag)
			c = l.rw(op, slba, 1)
			c.SGL = capsule.KeyedSGL(77, 0, lba, false)
			inv, stag = form(c)
			require.False(t, inv)
			require.Zero(t, stag)
		}
	}
	c := l.read(0, 1)
	c.SGL = capsule.KeyedSGL(77, 0, 0, true) // length 0: no data
	inv, _ := form(c)
	require.False(t, inv)
	c = l.read(0, 1)
	c.Opcode = 0x55
	inv, stag := form(c)
	require.True(t, inv)
	require.Equal(t, c.SGL.Key(), stag)
	inv, _ = form(capsule.FlushSQE(l.next(), 1))
	require.False(t, inv)
}

// TestNVME_27_DataOnlyWithSuccess: data goes to the host with a success, and never with an error.
func TestNVME_27_DataOnlyWithSuccess(t *testing.T) {
	w, l := storageLine(t)
	l.ok(l.ask(l.read(0, 2)))
	require.Equal(t, capsule.DataKeyed, l.last.Data.Kind)
	require.Equal(t, uint32(2*lba), l.last.Data.Length)
	l.ok(l.ask(l.rw(capsule.OpWrite, 0, 2)))
	require.Equal(t, capsule.DataNone, l.last.Data.Kind)
	w.status = capsule.StatusReadError
	l.refused(capsule.StatusReadError, 0, l.ask(l.read(0, 2)))
	require.Equal(t, capsule.DataNone, l.last.Data.Kind)
}

// TestNVME_80_SQHD: SQHD counts responses, and wraps after SQSIZE. Before Connect it is 0.
func TestNVME_80_SQHD(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	require.Zero(t, l.ask(capsule.KeepAliveSQE(9)).SQHD)
	require.Equal(t, uint16(1), l.connect(storage, capsule.AnyController).SQHD)
	for i := uint16(2); i < 100; i++ {
		require.Equal(t, i%32, l.ask(capsule.KeepAliveSQE(i)).SQHD)
	}
	small := w.arrive(hostA, idA, 0, 32)
	small.ok(small.connect(storage, capsule.AnyController, func(m *capsule.Connect, _ *capsule.ConnectData) { m.SQSize = 1 }))
	require.Zero(t, small.ask(capsule.KeepAliveSQE(1)).SQHD)
	require.Equal(t, uint16(1), small.ask(capsule.KeepAliveSQE(2)).SQHD)
}

// TestNVME_82_Busy: the engine ends a command without memory, or one whose grant takes too long. The host may try again.
func TestNVME_82_Busy(t *testing.T) {
	w, l := storageLine(t)
	w.hold[DoFetch], w.hold[DoExecute] = true, true
	for _, c := range []capsule.SQE{l.rw(capsule.OpWrite, 0, 1), l.read(0, 1)} {
		l.send(c)
		a := w.goOn()
		w.do(a.Queue.Finish(a.Ref, capsule.StatusBusy, nil))
		r := l.answers[len(l.answers)-1]
		require.Equal(t, capsule.StatusBusy, r.Status)
		require.False(t, r.Status.DNR())
		require.True(t, l.last.Response.Invalidate)
		require.False(t, a.Queue.Begin(a.Ref))
		require.Empty(t, a.Queue.Finish(a.Ref, capsule.Success, nil), "it has ended")
		require.Empty(t, a.Queue.Fetched(0, a.Ref, make([]byte, lba), nil))
	}
	// Nor is another command ended that has taken its place.
	l.send(l.read(0, 1))
	old := w.goOn()
	w.do(old.Queue.Finish(old.Ref, capsule.StatusBusy, nil))
	l.send(l.read(0, 1))
	again := w.goOn()
	require.Equal(t, old.Ref.Slot, again.Ref.Slot)
	require.Empty(t, old.Queue.Finish(old.Ref, capsule.Success, nil))
	require.False(t, old.Queue.Begin(old.Ref))
	w.act(again)
	require.Empty(t, l.open)
	delete(w.hold, DoFetch)
	delete(w.hold, DoExecute)
	l.ok(l.ask(l.rw(capsule.OpWrite, 0, 1)))
}

// TestNVME_82_BusyConnect: a Connect without memory is a Connect that failed.
func TestNVME_82_BusyConnect(t *testing.T) {
	w := newWorld(t)
	w.hold[DoFetch] = true
	l := w.arrive(hostA, idA, 0, 32)
	l.send(l.connectSQE(storage, capsule.AnyController))
	a := w.goOn()
	w.do(a.Queue.Finish(a.Ref, capsule.StatusBusy, nil))
	require.Equal(t, capsule.StatusBusy, l.answers[0].Status)
	require.Zero(t, w.target.controllers)
}

// TestNVME_89_QueueDepth: a host with more commands outstanding than the queue has receives loses the queue.
func TestNVME_89_QueueDepth(t *testing.T) {
	w, l := storageLine(t)
	w.hold[DoExecute] = true
	for range l.q.Depth() {
		l.send(l.read(0, 1))
	}
	require.False(t, l.isClosed())
	l.send(l.read(0, 1))
	require.True(t, l.isClosed())
	for len(w.held) > 0 {
		a := w.goOn()
		require.False(t, a.Queue.Begin(a.Ref))
	}
}

// TestStrings has what an engine may write to a log.
func TestStrings(t *testing.T) {
	require.Equal(t, "respond fetch fill execute flush close Do(0) Do(9)",
		fmt.Sprint(DoRespond, " ", DoFetch, " ", DoFill, " ", DoExecute, " ", DoFlush, " ", DoClose, " ", Do(0), " ", Do(9)))
	require.Equal(t, "read write compare write zeroes trim flush OpKind(0)",
		fmt.Sprint(OpRead, " ", OpWrite, " ", OpCompare, " ", OpWriteZeroes, " ", OpTrim, " ", OpFlush, " ", OpKind(0)))
}

// TestNVME_91_NoOctetsOfOthers: the engine may pass in used buffers: each of their octets is overwritten.
func TestNVME_91_NoOctetsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	disc := w.admin(hostA, idA, capsule.DiscoveryNQN)
	disc.enable()
	clean := func(l *line, c capsule.SQE) {
		t.Helper()
		l.ok(l.ask(c))
		require.NotContains(t, string(l.data), "\xA5\xA5")
	}
	for cns := range uint8(4) {
		clean(l, capsule.Identify{NSID: 1, CNS: cns}.SQE(l.next(), l.at(4096)))
	}
	clean(l, capsule.Identify{CNS: capsule.CNSCommandSet}.SQE(l.next(), l.at(4096)))
	clean(l, capsule.Identify{NSID: 9}.SQE(l.next(), l.at(4096)))
	for lid := uint8(1); lid <= 5; lid++ {
		for _, off := range []uint64{0, 64} {
			clean(l, capsule.NewGetLogPage(lid, off, 8192, false).SQE(l.next(), l.at(8192)))
		}
	}
	for _, lid := range []uint8{capsule.LogError, capsule.LogSMART, capsule.LogDiscovery} {
		clean(disc, capsule.NewGetLogPage(lid, 0, 8192, false).SQE(l.next(), l.at(8192)))
	}
	clean(l, capsule.GetFeatures{FID: capsule.FeatureHostID, Value: 1}.SQE(l.next(), l.at(16)))
}

// TestNVME_82_ZeroRef: the zero Ref of an action without a command belongs to no command: neither to the first one, nor
// to one after all generations have been used.
func TestNVME_82_ZeroRef(t *testing.T) {
	w, l := storageLine(t)
	w.hold[DoExecute] = true
	for i := range l.q.slots.all {
		l.q.slots.all[i].gen = 0xffff_fffe + uint32(i%2)
	}
	for range 3 {
		for range l.q.Depth() {
			l.send(l.read(0, 1))
		}
		for len(w.held) > 0 {
			require.NotZero(t, w.held[0].Ref)
			require.Nil(t, l.q.slots.get(Ref{}))
			w.act(w.goOn())
		}
	}
	fresh := newSlots(2)
	c, d := capsule.FlushSQE(0, 1), capsule.Data{}
	require.NotZero(t, fresh.ref(fresh.take(&c, &d)))
}

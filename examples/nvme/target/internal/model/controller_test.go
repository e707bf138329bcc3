package model

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestNVME_38_Properties(t *testing.T) {
	w := newWorld(t)
	l := w.admin(hostA, idA, storage)
	get := func(off uint32) uint64 {
		r := l.ask(capsule.GetProperty(off).SQE(l.next()))
		l.ok(r)
		return r.Value()
	}
	require.Equal(t, uint64(0x20_0F01007F), get(capsule.PropCAP)) // 7f 00 01 0f 20 00 00 00
	require.Equal(t, uint64(0x10300), get(capsule.PropVS))
	require.Equal(t, uint64(0), get(capsule.PropCC))
	require.Equal(t, uint64(0), get(capsule.PropCSTS))
	l.setCC(0x460000)
	require.Equal(t, uint64(0x460000), get(capsule.PropCC))
	for _, m := range []capsule.Property{
		{Offset: 0x0C},                          // nvme show-regs asks for it
		{Offset: capsule.PropCAP, Attrib: 0},    // 8 octets
		{Offset: capsule.PropCSTS, Attrib: 1},   // 4
		{Offset: capsule.PropCC, Attrib: 2},     // no size
		{Set: true, Offset: capsule.PropCSTS},   // read-only
		{Set: true, Offset: capsule.PropVS},     // read-only
		{Offset: capsule.PropCC + 4, Attrib: 0}, // nothing
	} {
		l.refused(capsule.StatusInvalidField, 0, l.ask(m.SQE(l.next())))
	}
}

func TestNVME_39_Edges(t *testing.T) {
	w := newWorld(t)
	l := w.admin(hostA, idA, storage)
	l.enable()
	l.setCC(0x460001 | 5<<4) // a field changes while EN is set: ignored
	require.Equal(t, capsule.CSTS{RDY: true}, l.csts())
	l.setCC(0x460000)
	require.Equal(t, capsule.CSTS{}, l.csts())
	l.enable()
	l.setCC(0x464001)
	require.Equal(t, capsule.CSTS{SHST: capsule.SHSTComplete}, l.csts())
	l.setCC(0x460001) // EN stays: nothing
	require.Equal(t, capsule.CSTS{SHST: capsule.SHSTComplete}, l.csts())
	l.setCC(0x460000)
	require.Equal(t, capsule.CSTS{}, l.csts())
	l.enable()
	l.setCC(0x468001) // abrupt
	require.Equal(t, capsule.CSTS{SHST: capsule.SHSTComplete}, l.csts())
}

func TestNVME_39_UnsupportedFields(t *testing.T) {
	for _, cc := range []uint64{
		0x450001,         // IOSQES 5
		0x360001,         // IOCQES 3
		0x460001 | 1<<4,  // CSS
		0x460001 | 6<<4,  // CSS: I/O command sets, which CAP does not offer
		0x460001 | 1<<7,  // MPS
		0x460001 | 1<<11, // AMS
		0x000001,         // all fields zero
		0x464001 | 1<<7,  // with a shutdown besides
	} {
		w := newWorld(t)
		l := w.admin(hostA, idA, storage)
		l.setCC(cc)
		require.Equal(t, capsule.CSTS{CFS: true}, l.csts(), "CC %#x", cc)
		l.refused(capsule.StatusSequenceError, 0, l.ask(capsule.AsyncEventSQE(l.next())))
		l.setCC(0x460000)
		require.Equal(t, capsule.CSTS{}, l.csts())
		l.enable()
	}
}

// TestNVME_40_Shutdown: SHST is 1 until all volatile namespaces are flushed.
func TestNVME_40_Shutdown(t *testing.T) {
	w := newWorld(t)
	durable := namespace(2)
	durable.Volatile = false
	volatile := w.add(namespace(1))
	w.add(durable)
	l := w.ready()
	w.hold[DoFlush] = true
	l.setCC(0x464001)
	require.Equal(t, capsule.CSTS{RDY: true, SHST: capsule.SHSTOccurring}, l.csts())
	l.refused(capsule.StatusSequenceError, 0, l.ask(capsule.AsyncEventSQE(l.next())))
	w.act(w.goOn())
	require.Equal(t, []Op{{Kind: OpFlush, Namespaces: []*Namespace{volatile}}}, w.ops)
	require.Equal(t, capsule.CSTS{SHST: capsule.SHSTComplete}, l.csts())
	require.Empty(t, w.held)
}

// TestNVME_40_NoStatusFromAnEndedController: a command that comes after its controller has ended, and before its queue
// is closed, gets no response. A status with DNR would be an I/O error at the host, which otherwise repeats the command
// on its next connection.
func TestNVME_40_NoStatusFromAnEndedController(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	io := admin.io(1)
	admin.q.ctrl.enter(ended)
	for _, l := range []*line{admin, io} {
		before := len(l.answers)
		l.send(capsule.FlushSQE(l.next(), 1))
		require.Len(t, l.answers, before)
	}
}

// TestNVME_40_FailedFlush: if the flush fails, the host sees a failed controller, until it resets the controller.
func TestNVME_40_FailedFlush(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	w.status = capsule.StatusWriteFault
	l.setCC(0x464001)
	require.Equal(t, capsule.CSTS{RDY: true, CFS: true, SHST: capsule.SHSTOccurring}, l.csts())
	l.setCC(0x460000)
	require.Equal(t, capsule.CSTS{}, l.csts())
}

// TestNVME_40_LateFlush: the flush of a shutdown that a reset has ended does not complete the next shutdown.
func TestNVME_40_LateFlush(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	w.hold[DoFlush] = true
	l.setCC(0x464001)
	l.setCC(0x460000)
	l.enable()
	l.setCC(0x464001)
	c := w.goOn().Controller
	require.Empty(t, w.held, "there is one at a time, however often the host resets")
	_, more := w.target.Flush(c)
	require.True(t, more)
	l.setCC(0x460000)
	l.enable()
	l.setCC(0x464001)
	require.Empty(t, w.held)
	w.target.Flushed(c, capsule.Success)
	require.Equal(t, uint8(capsule.SHSTOccurring), l.csts().SHST)
	_, more = w.target.Flush(c)
	require.True(t, more)
	w.target.Flushed(c, capsule.Success)
	require.Equal(t, uint8(capsule.SHSTComplete), l.csts().SHST)
	_, more = w.target.Flush(c)
	require.False(t, more)
}

// TestNVME_40_FlushOfSeveral: a flush serves all controllers that shut down before it begins. It is not needed for those
// that are reset before.
func TestNVME_40_FlushOfSeveral(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	reset, early, late := w.ready(), w.admin(hostB, idB, storage), w.admin(hostB, idB, storage)
	early.enable()
	late.enable()
	w.hold[DoFlush] = true
	reset.setCC(0x464001)
	c := w.goOn().Controller
	reset.setCC(0x460000)
	reset.enable()
	_, more := w.target.Flush(c)
	require.False(t, more)
	reset.setCC(0x464001)
	early.setCC(0x464001)
	c = w.goOn().Controller
	reset.setCC(0x460000)
	_, more = w.target.Flush(c)
	require.True(t, more)
	late.setCC(0x464001)
	w.target.Flushed(c, capsule.Success)
	require.Equal(t, capsule.CSTS{}, reset.csts())
	require.Equal(t, uint8(capsule.SHSTComplete), early.csts().SHST)
	require.Equal(t, uint8(capsule.SHSTOccurring), late.csts().SHST)
	require.Empty(t, w.held)
	_, more = w.target.Flush(c)
	require.True(t, more)
	w.tick(time.Hour) // the hosts have gone
	w.target.Flushed(c, capsule.Success)
	_, more = w.target.Flush(c)
	require.False(t, more)
}

// TestNVME_41_Reset: a reset closes the I/O queues. RDY becomes 0 when their connections have ended and no back end
// works for them.
func TestNVME_41_Reset(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	one, two := admin.io(1), admin.io(2)
	w.hold[DoExecute], w.hold[DoClose] = true, true
	one.send(one.read(0, 1))
	two.send(two.read(0, 1))
	started, waiting := w.goOn(), w.goOn()
	require.True(t, started.Queue.Begin(started.Ref))

	admin.setCC(0x460000)
	require.Equal(t, capsule.CSTS{RDY: true}, admin.csts())
	require.False(t, waiting.Queue.Begin(waiting.Ref), "nothing starts any more")
	one.send(one.read(0, 1)) // nor is anything answered
	require.Equal(t, DoClose, w.goOn().Do)
	require.Equal(t, DoClose, w.goOn().Do)
	one.lose()
	two.lose()
	require.Equal(t, capsule.CSTS{RDY: true}, admin.csts())
	require.Empty(t, started.Queue.Finish(started.Ref, capsule.Success, nil))
	require.Equal(t, capsule.CSTS{}, admin.csts())
	require.Empty(t, one.answersBut(1))
}

// TestNVME_41_ResetOtherOrders: the back end may be ready before the connection has ended, and EN may be set before RDY is 0.
func TestNVME_41_ResetOtherOrders(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	one := admin.io(1)
	w.hold[DoExecute], w.hold[DoClose] = true, true
	one.send(one.read(0, 1))
	a := w.goOn()
	require.True(t, a.Queue.Begin(a.Ref))
	admin.setCC(0x460000)
	require.Empty(t, a.Queue.Finish(a.Ref, capsule.Success, nil))
	require.Equal(t, resetting, admin.q.ctrl.state())
	admin.setCC(0x460001)
	require.Equal(t, resetting, admin.q.ctrl.state())
	one.lose()
	require.Equal(t, ready, admin.q.ctrl.state())
	delete(w.hold, DoExecute)
	again := admin.io(1)
	again.ok(again.ask(again.read(0, 1)))
}

// answersBut returns the answers after the first n.
func (l *line) answersBut(n int) []capsule.CQE { return l.answers[n:] }

// TestNVME_41_ResetOfTheAdminQueue: a reset ends the parked commands of the admin queue, and resets the features.
func TestNVME_41_ResetOfTheAdminQueue(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	l := w.ready()
	set := func(fid uint8, v uint32) {
		l.ok(l.ask(capsule.SetFeatures{FID: fid, Value: v}.SQE(l.next(), capsule.NullSGL())))
	}
	set(capsule.FeatureAsyncEvents, capsule.NoticeNamespaces)
	set(capsule.FeatureVWC, 0)
	set(capsule.FeatureQueues, 0)
	l.send(capsule.AsyncEventSQE(0xF01F))
	l.setCC(0x460000)
	require.Empty(t, l.open, "the request has ended")
	require.Equal(t, capsule.StatusAbortRequested, l.answers[len(l.answers)-1].Status)
	l.enable()
	for fid, want := range map[uint8]uint32{
		capsule.FeatureAsyncEvents: 0, capsule.FeatureVWC: 1, capsule.FeatureQueues: capsule.Queues(64).Value(),
	} {
		r := l.ask(capsule.GetFeatures{FID: fid}.SQE(l.next(), capsule.NullSGL()))
		l.ok(r)
		require.Equal(t, want, r.DW0)
	}
}

// TestNVME_40_ParkedAtShutdown: on shutdown and at the end, parked commands are not answered.
func TestNVME_40_ParkedAtShutdown(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	l.send(capsule.AsyncEventSQE(31))
	l.setCC(0x464001)
	l.lose()
	require.Equal(t, map[uint16]int{31: 1}, l.open)
}

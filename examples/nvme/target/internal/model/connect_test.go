package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

type connectChange = func(*capsule.Connect, *capsule.ConnectData)

// TestNVME_32_ConnectRows: each row is refused, even if the rows after it in the table are wrong as well.
func TestNVME_32_ConnectRows(t *testing.T) {
	const cntlidUnknown = 77
	noHost := func(_ *capsule.Connect, d *capsule.ConnectData) { d.HostNQN = "nqn.none" }
	for _, row := range []struct {
		name   string
		qid    uint16
		want   capsule.Status
		dw0    uint32
		change []connectChange
	}{
		{"4 RECFMT", 0, capsule.StatusConnectFormat, 0, []connectChange{
			func(m *capsule.Connect, d *capsule.ConnectData) { m.RecFmt, m.QID, m.SQSize, d.SubNQN = 1, 9, 0, "x" },
		}},
		{"5 QID", 0, capsule.StatusConnectParameter, 42, []connectChange{
			func(m *capsule.Connect, d *capsule.ConnectData) { m.QID, m.SQSize, d.SubNQN = 1, 0, "x" },
		}},
		{"6 SQSIZE 0", 0, capsule.StatusConnectParameter, 44, []connectChange{
			func(m *capsule.Connect, d *capsule.ConnectData) { m.SQSize, d.SubNQN = 0, "x" },
		}},
		{"6 SQSIZE", 0, capsule.StatusConnectParameter, 44, []connectChange{
			func(m *capsule.Connect, d *capsule.ConnectData) { m.SQSize, d.SubNQN = 32, "x" },
		}},
		{"7 SUBNQN", 0, capsule.StatusConnectParameter, 0x10100, []connectChange{
			func(_ *capsule.Connect, d *capsule.ConnectData) { d.SubNQN, d.HostNQN = "nqn.none", "" },
		}},
		{"8 HOSTNQN", 0, capsule.StatusConnectParameter, 0x10200, []connectChange{
			func(_ *capsule.Connect, d *capsule.ConnectData) { d.HostNQN, d.HostID = "", [16]byte{} },
		}},
		{"8 HOSTID", 0, capsule.StatusConnectParameter, 0x10000, []connectChange{
			noHost, func(_ *capsule.Connect, d *capsule.ConnectData) { d.HostID = [16]byte{} },
		}},
		{"9 host", 0, capsule.StatusConnectHost, 0, []connectChange{
			noHost, func(_ *capsule.Connect, d *capsule.ConnectData) { d.CNTLID = 1 },
		}},
		{"10 CNTLID", 0, capsule.StatusConnectParameter, 0x10010, []connectChange{
			func(_ *capsule.Connect, d *capsule.ConnectData) { d.CNTLID = 1 },
		}},
		{"11 limit", 0, capsule.StatusConnectBusy, 0, nil},
		{"12 no such controller", 3, capsule.StatusConnectParameter, 0x10010, []connectChange{
			func(_ *capsule.Connect, d *capsule.ConnectData) { d.CNTLID = cntlidUnknown },
		}},
		{"13 not ready", 3, capsule.StatusSequenceError, 0, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Limits.PerSubsystem = 1 })
			w.must(w.target.SetHosts(storage, []string{hostA, hostB}, nil))
			admin := w.admin(hostA, idA, storage)
			cntlid := uint16(capsule.AnyController)
			if row.qid > 0 {
				cntlid = admin.cntlid()
			}
			l := w.arrive(hostA, idA, row.qid, 32)
			r := l.connect(storage, cntlid, row.change...)
			l.refused(row.want, row.dw0, r)
			require.Zero(t, r.SQHD)
			require.NotNil(t, l.last.Refusal)
			require.Equal(t, row.want, l.last.Refusal.Err.Status)
			require.Equal(t, 1, w.target.controllers, "nothing was made")
		})
	}
}

// TestNVME_32_ConnectInSequence has rows 1 to 3 and 14, which need a certain state.
func TestNVME_32_ConnectInSequence(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	l.refused(capsule.StatusSequenceError, 0, l.ask(capsule.KeepAliveSQE(l.next())))
	l.ok(l.connect(storage, capsule.AnyController))
	l.refused(capsule.StatusSequenceError, 0, l.connect(storage, capsule.AnyController))
	l.enable()

	short := w.arrive(hostA, idA, 0, 32)
	c := short.connectSQE(storage, capsule.AnyController)
	c.SGL = short.at(1023)
	short.refused(capsule.StatusInvalidSGLLength, 0, short.ask(c))

	count := capsule.SetFeatures{FID: capsule.FeatureQueues, Value: capsule.Queues(2).Value()}
	l.ok(l.ask(count.SQE(l.next(), capsule.NullSGL())))
	beyond := w.arrive(hostA, idA, 3, 32)
	beyond.refused(capsule.StatusConnectParameter, 42, beyond.connect(storage, l.cntlid()))
	l.io(2)
	again := w.arrive(hostA, idA, 2, 32)
	again.refused(capsule.StatusSequenceError, 0, again.connect(storage, l.cntlid()))

	l.setCC(0x464001) // a shutdown is in progress, or complete
	late := w.arrive(hostA, idA, 1, 32)
	late.refused(capsule.StatusSequenceError, 0, late.connect(storage, l.cntlid()))
}

// TestNVME_32_SecondFailureCloses: the second command that fails before Connect has succeeded ends the connection.
func TestNVME_32_SecondFailureCloses(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	l.refused(capsule.StatusSequenceError, 0, l.ask(capsule.KeepAliveSQE(1)))
	l.send(l.connectSQE("nqn.none", capsule.AnyController))
	require.True(t, l.isClosed())
	require.Len(t, l.answers, 1)
}

func TestNVME_33_CNTLID(t *testing.T) {
	w := newWorld(t)
	w.admin(hostA, idA, storage)
	l := w.arrive(hostA, idA, 0, 32)
	r := l.connect(storage, capsule.AnyController)
	l.ok(r)
	l.ok(l.ask(capsule.Identify{CNS: capsule.CNSController}.SQE(l.next(), l.at(capsule.PageSize))))
	d, err := capsule.ParseIdentifyController(l.data)
	require.NoError(t, err)
	require.Equal(t, uint32(2), r.DW0)
	require.Equal(t, uint16(2), d.CNTLID)
	require.Equal(t, []byte{2, 0}, l.data[78:80])
	c := l.q.Controller()
	require.Equal(t, uint16(2), c.id)
	require.Equal(t, []string{hostA, storage}, []string{c.HostNQN(), c.SubNQN()})
}

// TestNVME_34_TransientRefusals: a host may try again after a refusal because of a limit, or because the target stops.
func TestNVME_34_TransientRefusals(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	w.target.Stop()
	r := l.connect(storage, capsule.AnyController)
	l.refused(capsule.StatusConnectBusy, 0, r)
	require.False(t, r.Status.DNR())
	_, reject := w.target.Open(w.now, arrival(0, 32))
	require.Equal(t, capsule.RejectNoResources, reject)
}

// TestNVME_35_ControllersOfOthers: another host gets the same answer whether the controller exists or not.
func TestNVME_35_ControllersOfOthers(t *testing.T) {
	w := newWorld(t)
	admin := w.ready()
	for _, other := range []struct {
		nqn string
		id  [16]byte
	}{{hostB, idA}, {hostA, idB}} {
		for _, cntlid := range []uint16{admin.cntlid(), 99} {
			l := w.arrive(other.nqn, other.id, 1, 32)
			l.refused(capsule.StatusConnectParameter, 0x10010, l.connect(storage, cntlid))
		}
	}
	admin.io(1)
}

func TestNVME_36_NoFlowControl(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	r := l.connect(storage, capsule.AnyController, func(m *capsule.Connect, _ *capsule.ConnectData) {
		m.CAttr = capsule.AttrNoFlowControl
	})
	l.ok(r)
	require.Equal(t, uint16(0xFFFF), r.SQHD)
	require.Equal(t, uint16(0xFFFF), l.ask(capsule.KeepAliveSQE(9)).SQHD)
}

// TestNVME_36_OtherAttributes: the other bits of CATTR say nothing about flow control.
func TestNVME_36_OtherAttributes(t *testing.T) {
	const others = ^uint8(capsule.AttrNoFlowControl)
	for attrs, want := range map[uint8][2]uint16{0: {1, 2}, others: {1, 2}, 0xFF: {0xFFFF, 0xFFFF}} {
		l := newWorld(t).arrive(hostA, idA, 0, 32)
		r := l.connect(storage, capsule.AnyController, func(m *capsule.Connect, _ *capsule.ConnectData) { m.CAttr = attrs })
		l.ok(r)
		require.Equal(t, want, [2]uint16{r.SQHD, l.ask(capsule.KeepAliveSQE(9)).SQHD}, "CATTR %#02x", attrs)
	}
}

func TestNVME_37_MalformedNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", 256), strings.Repeat("n", 224), "nqn.\x1b[31m", "nqn.\xff", "nqn.\u0085"} {
		w := newWorld(t)
		l := w.arrive(name, idA, 0, 32)
		l.refused(capsule.StatusConnectParameter, 0x10200, l.connect(storage, capsule.AnyController))
		text := l.last.Refusal.String()
		require.NotContains(t, text, "\x1b")
		require.Contains(t, text, storage)
	}
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	l.refused(capsule.StatusConnectParameter, 0x10100, l.connect("nqn.\x1b", capsule.AnyController))
	require.Contains(t, l.last.Refusal.String(), `"nqn.\x1b"`)
}

// TestNVME_42_CNTLIDsInTurn: ids are assigned in turn, and after the last one from 1 again.
func TestNVME_42_CNTLIDsInTurn(t *testing.T) {
	w := newWorld(t)
	first := w.admin(hostA, idA, storage)
	second := w.admin(hostA, idA, storage)
	second.lose()
	third := w.admin(hostA, idA, storage)
	require.Equal(t, []uint16{1, 3}, []uint16{first.cntlid(), third.cntlid()})
	w.target.subsystem(storage).lastID = capsule.MaxCNTLID - 1
	last := w.admin(hostA, idA, storage)
	require.Equal(t, uint16(capsule.MaxCNTLID), last.cntlid())
	next := w.admin(hostA, idA, storage)
	require.Equal(t, uint16(2), next.cntlid(), "1 is in use")
}

// TestNVME_32_TwoConnectsAtOnce: while the data of a Connect is fetched, another one comes. One of them makes the controller.
func TestNVME_32_TwoConnectsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.hold[DoFetch] = true
	l := w.arrive(hostA, idA, 0, 32)
	l.send(l.connectSQE(storage, capsule.AnyController))
	l.send(l.connectSQE(storage, capsule.AnyController))
	w.act(w.goOn())
	w.act(w.goOn())
	require.Equal(t, capsule.Success, l.answers[0].Status)
	require.Equal(t, capsule.StatusSequenceError, l.answers[1].Status)
	require.Equal(t, 1, w.target.controllers)
}

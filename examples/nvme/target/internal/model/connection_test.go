package model

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_2_ORD: the ORD of the Reply is never 0, and a configuration of 0 is refused.
func TestNVME_2_ORD(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ ird, want int }{{1, 1}, {16, 16}, {128, 16}} {
		a := arrival(0, 32)
		a.IRD = c.ird
		q, reject := w.target.Open(0, a)
		require.Zero(t, reject)
		require.Equal(t, c.want, q.ORD())
	}
	cfg := DefaultConfig()
	cfg.ORD = 0
	_, err := New(cfg)
	require.ErrorContains(t, err, "ORD is 0")
	cfg = DefaultConfig()
	cfg.InCapsule = 8
	_, err = New(cfg)
	require.ErrorContains(t, err, "multiple of 16")
	cfg = DefaultConfig()
	cfg.Advertised.Addr = "10.1.1.1"
	_, err = New(cfg)
	require.ErrorContains(t, err, "no address")
	cfg = DefaultConfig()
	cfg.Firmware = "ä"
	_, err = New(cfg)
	require.Error(t, err)
}

func TestNVME_4_IRD(t *testing.T) {
	w := newWorld(t)
	a := arrival(0, 32)
	a.IRD = 0
	_, reject := w.target.Open(0, a)
	require.Equal(t, capsule.RejectIRD, reject)
	a.IRD = -1
	q, reject := w.target.Open(0, a)
	require.Zero(t, reject)
	require.Equal(t, 1, q.ORD())
}

func TestNVME_7_PrivateData(t *testing.T) {
	w := newWorld(t)
	for n := range capsule.PrivateSize {
		a := arrival(0, 32)
		a.Private = a.Private[:n]
		_, reject := w.target.Open(0, a)
		require.Equal(t, capsule.RejectLength, reject)
	}
	format := arrival(0, 32)
	format.Private[0] = 1
	_, reject := w.target.Open(0, format)
	require.Equal(t, capsule.RejectRecFmt, reject)
	for _, c := range []struct {
		req  capsule.Request
		want capsule.RejectStatus
	}{
		{capsule.Request{QID: 65, HRQSize: 32, HSQSize: 31}, capsule.RejectQID},
		{capsule.Request{QID: 64, HRQSize: 128, HSQSize: 127}, 0},
		{capsule.Request{QID: 1, HRQSize: 129, HSQSize: 128}, capsule.RejectHSQSize},
		{capsule.Request{HRQSize: 32, HSQSize: 32}, capsule.RejectHSQSize},
		{capsule.Request{HRQSize: 32, HSQSize: 0}, capsule.RejectHSQSize},
		{capsule.Request{HRQSize: 30, HSQSize: 31}, capsule.RejectHRQSize},
		{capsule.Request{QID: 1, HRQSize: 32, HSQSize: 31, CNTLID: 5}, capsule.RejectCNTLID},
		{capsule.Request{QID: 0, HRQSize: 32, HSQSize: 31, CNTLID: 5}, 0},
	} {
		a := arrival(0, 32)
		a.Private = c.req.Append(nil)
		before := w.target.connections
		q, reject := w.target.Open(0, a)
		require.Equal(t, c.want, reject, "%+v", c.req)
		if reject != 0 {
			require.Nil(t, q)
			require.Equal(t, before, w.target.connections)
		}
	}
	require.Zero(t, w.target.controllers)
}

func TestNVME_8_NoCNTLIDInPrivateData(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	l.io(1) // Linux 6.1 does not tell it
	a := arrival(2, 32)
	a.Private = capsule.Request{QID: 2, HRQSize: 32, HSQSize: 31, CNTLID: l.cntlid()}.Append(nil)
	_, reject := w.target.Open(0, a) // Linux 6.12 does
	require.Zero(t, reject)
}

func TestNVME_9_Receives(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	require.Equal(t, 32, l.q.Depth())
	require.Equal(t, capsule.Accept{CRQSize: 32}, l.q.Accept())
	require.Equal(t, 64+1024, l.q.ReceiveSize())
	require.Equal(t, 64+4096, w.arrive(hostA, idA, 1, 128).q.ReceiveSize())
	off := newWorld(t, func(c *Config) { c.InCapsule = 0 })
	require.Equal(t, 64+1024, off.arrive(hostA, idA, 1, 128).q.ReceiveSize())
}

func TestNVME_12_NoConnect(t *testing.T) {
	w := newWorld(t)
	l := w.arrive(hostA, idA, 0, 32)
	l.ask(capsule.KeepAliveSQE(1)) // which is no Connect
	require.Equal(t, 10*time.Second, w.tick(0))
	w.tick(10*time.Second - 1)
	require.False(t, l.isClosed())
	w.tick(1)
	require.True(t, l.isClosed())
	connected := w.admin(hostA, idA, storage)
	require.Equal(t, Never, w.tick(time.Hour))
	require.False(t, connected.isClosed())
}

// TestNVME_84_LostQueues: the loss of an I/O queue leaves the controller, and its number can connect again. The loss of
// the admin queue ends them all.
func TestNVME_84_LostQueues(t *testing.T) {
	w := newWorld(t)
	admin := w.ready()
	one, two := admin.io(1), admin.io(2)
	one.lose()
	require.Equal(t, capsule.CSTS{RDY: true}, admin.csts())
	one = admin.io(1)
	admin.lose()
	require.ElementsMatch(t, []*line{one, two}, w.closed)
	require.Zero(t, w.target.controllers)
	require.Zero(t, w.target.connections)
	require.Empty(t, w.target.perAddress)
	require.Empty(t, w.target.perHost)
	late := w.arrive(hostA, idA, 1, 32)
	late.refused(capsule.StatusConnectParameter, 0x10010, late.connect(storage, 1))
}

func TestNVME_89_Connections(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.Connections, c.Limits.PerAddress = 3, 2 })
	first := w.arrive(hostA, idA, 0, 32)
	w.arrive(hostA, idA, 0, 32)
	_, reject := w.target.Open(0, arrival(0, 32))
	require.Equal(t, capsule.RejectNoResources, reject, "two of one address")
	other := arrival(0, 32)
	other.Remote = "10.1.1.3"
	_, reject = w.target.Open(0, other)
	require.Zero(t, reject)
	other.Remote = "10.1.1.4"
	_, reject = w.target.Open(0, other)
	require.Equal(t, capsule.RejectNoResources, reject, "three in all")
	first.lose()
	w.do(w.target.Lost(first.q, nil)) // which does not count twice
	_, reject = w.target.Open(0, other)
	require.Zero(t, reject)
	_, reject = w.target.Open(0, other)
	require.Equal(t, capsule.RejectNoResources, reject)
}

func TestNVME_89_Controllers(t *testing.T) {
	full := func(l *line, nqn string) {
		l.w.t.Helper()
		l.refused(capsule.StatusConnectBusy, 0, l.connect(nqn, capsule.AnyController))
	}
	for _, limit := range []func(*Limits){
		func(l *Limits) { l.Controllers = 2 },
		func(l *Limits) { l.PerSubsystem = 2 },
		func(l *Limits) { l.PerHost = 2 },
	} {
		w := newWorld(t, func(c *Config) { limit(&c.Limits) })
		first := w.admin(hostA, idA, storage)
		w.admin(hostA, idA, storage)
		full(w.arrive(hostA, idA, 0, 32), storage)
		first.lose()
		w.admin(hostA, idA, storage)
	}
	w := newWorld(t, func(c *Config) { c.Limits.PerSubsystem, c.Limits.PerHost = 2, 1 })
	w.admin(hostA, idA, storage)
	full(w.arrive(hostA, idA, 0, 32), capsule.DiscoveryNQN)
	w.admin(hostB, idB, storage)
}

// TestNVME_86_CloseAll: when the target ends, so do all controllers and connections.
func TestNVME_86_CloseAll(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	admin.io(1)
	w.arrive(hostA, idA, 0, 32)
	w.target.Stop()
	require.Len(t, w.target.Volatile(), 1)
	w.do(w.target.CloseAll(nil))
	require.Len(t, w.closed, 3)
	require.Zero(t, w.target.connections)
}

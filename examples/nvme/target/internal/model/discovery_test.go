package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// discover connects a host to the discovery subsystem.
func (w *world) discover(host string, id [16]byte) *line {
	w.t.Helper()
	l := w.admin(host, id, capsule.DiscoveryNQN)
	l.enable()
	return l
}

// subsystems reads the names in the log, and its GENCTR.
func (l *line) subsystems(rae bool) (uint64, []string) {
	l.w.t.Helper()
	h, entries, err := capsule.ParseDiscoveryLog(l.log(capsule.LogDiscovery, 0, 8192, rae))
	require.NoError(l.w.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.SubNQN)
	}
	return h.GENCTR, names
}

func TestNVME_87_LogOctets(t *testing.T) {
	w := newWorld(t)
	l := w.discover(hostA, idA)
	log := l.log(capsule.LogDiscovery, 0, 3072, false)
	fields(t, log, map[int]any{
		0: uint64(1), 8: uint64(2),
		1024: [3]uint8{1, 1, 3}, 1028: uint16(1), 1030: uint16(0xFFFF), 1032: uint16(32), 1056: "4420",
		1280: capsule.DiscoveryNQN, 1536: "10.1.1.1", 1792: [3]uint8{1, 5, 1},
		2048: [3]uint8{1, 1, 2}, 2052: uint16(1), 2054: uint16(0xFFFF), 2056: uint16(32), 2080: "4420",
		2304: storage, 2560: "10.1.1.1", 2816: [3]uint8{1, 5, 1},
	})
	require.Equal(t, log[:1024], l.log(capsule.LogDiscovery, 0, 1024, false))
}

// TestNVME_87_Addresses: the address is the one to which the host connected, or a configured one.
func TestNVME_87_Addresses(t *testing.T) {
	six := Address{capsule.AddressIPv6, "2001:db8::1", "99"}
	for _, c := range []struct{ configured, want Address }{
		{Address{}, Address{capsule.AddressIPv4, "10.1.1.1", "4420"}},
		{six, six},
	} {
		w := newWorld(t, func(cfg *Config) { cfg.Advertised = c.configured })
		_, entries, err := capsule.ParseDiscoveryLog(w.discover(hostA, idA).log(capsule.LogDiscovery, 0, 3072, true))
		require.NoError(t, err)
		for _, e := range entries {
			require.Equal(t, c.want, Address{e.ADRFAM, e.TRADDR, e.TRSVCID})
		}
	}
}

// TestNVME_87_PerHost: a host sees the subsystems that it may use.
func TestNVME_87_PerHost(t *testing.T) {
	w := newWorld(t)
	a, b := w.discover(hostA, idA), w.discover(hostB, idB)
	first, names := b.subsystems(true)
	require.Equal(t, []string{capsule.DiscoveryNQN, storage}, names)
	w.must(w.target.SetHosts(storage, []string{hostA}, nil))
	second, names := b.subsystems(true)
	require.Equal(t, []string{capsule.DiscoveryNQN}, names)
	require.NotEqual(t, first, second)
	_, names = a.subsystems(true)
	require.Equal(t, []string{capsule.DiscoveryNQN, storage}, names)
	w.must(w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.more"}, nil))
	_, names = b.subsystems(true)
	require.Equal(t, []string{capsule.DiscoveryNQN, "nqn.more"}, names)
	w.must(w.target.RemoveSubsystem("nqn.more", nil))
	fourth, _ := b.subsystems(true)
	require.Greater(t, fourth, second+1)
}

// TestNVME_87_Snapshot: reads at other offsets return the content that the read at offset 0 has seen.
func TestNVME_87_Snapshot(t *testing.T) {
	w := newWorld(t)
	a, b := w.discover(hostA, idA), w.discover(hostA, idA)
	head := a.log(capsule.LogDiscovery, 0, 1024, true)
	w.must(w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.more"}, nil))
	rest := a.log(capsule.LogDiscovery, 1024, 3072, true)
	_, entries, err := capsule.ParseDiscoveryLog(append(head, rest...))
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, make([]byte, 1024), rest[2048:])
	_, names := b.subsystems(true)
	require.Len(t, names, 3, "the other host sees the change")
	_, names = a.subsystems(true)
	require.Len(t, names, 3)
	c := capsule.NewGetLogPage(capsule.LogDiscovery, 4100, 1024, true).SQE(a.next(), a.at(1024))
	a.refused(capsule.StatusInvalidField, 0, a.ask(c))
}

// TestNVME_88_ChangeEvent: a persistent discovery controller reports changes.
func TestNVME_88_ChangeEvent(t *testing.T) {
	w := newWorld(t)
	l := w.discover(hostA, idA)
	r := l.setFeature(capsule.FeatureAsyncEvents, 0xFFFFFFFF)
	require.Equal(t, uint32(0x80000000), r.DW0)
	l.send(capsule.AsyncEventSQE(1000))
	l.send(capsule.AsyncEventSQE(1001))
	l.send(capsule.AsyncEventSQE(1002))
	l.subsystems(false)
	w.must(w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.more"}, nil))
	l.isEvent(1000, 0x0070F002)
	l.log(capsule.LogDiscovery, 0, 1024, true)
	w.must(w.target.RemoveSubsystem("nqn.more", nil)) // masked, and behind the snapshot
	require.Len(t, l.open, 2)
	l.log(capsule.LogDiscovery, 1024, 3072, false) // of the older content
	l.isEvent(1001, 0x0070F002)
	l.subsystems(false)
	require.Len(t, l.open, 1)
	w.must(w.target.SetHosts(storage, []string{hostA}, nil))
	l.isEvent(1002, 0x0070F002)
}

// TestNVME_93_HostRemoved: the controllers of a host that is no longer allowed end, and it cannot come back.
func TestNVME_93_HostRemoved(t *testing.T) {
	w := newWorld(t)
	w.add(namespace(1))
	a := w.ready()
	b := w.admin(hostB, idB, storage)
	b.enable()
	bio := b.io(1)
	w.must(w.target.SetHosts(storage, []string{hostA}, nil))
	require.Equal(t, []*line{b, bio}, w.closed)
	require.Equal(t, capsule.CSTS{RDY: true}, a.csts())
	again := w.arrive(hostB, idB, 0, 32)
	again.refused(capsule.StatusConnectHost, 0, again.connect(storage, capsule.AnyController))
	_, err := w.target.SetHosts(storage, []string{"\x00"}, nil)
	require.Error(t, err)
	w.must(w.target.SetHosts(storage, []string{}, nil))
	require.True(t, a.isClosed(), "an empty list allows no host")
}

// TestNVME_93_SubsystemRemoved: removing a subsystem ends its controllers.
func TestNVME_93_SubsystemRemoved(t *testing.T) {
	w := newWorld(t)
	l := w.ready()
	w.must(w.target.RemoveSubsystem(storage, nil))
	require.True(t, l.isClosed())
	again := w.arrive(hostA, idA, 0, 32)
	again.refused(capsule.StatusConnectParameter, 0x10100, again.connect(storage, capsule.AnyController))
}

func TestNVME_89_Subsystems(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.Subsystems = 2 })
	w.must(w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.more"}, nil))
	_, err := w.target.AddSubsystem(SubsystemConfig{NQN: "nqn.evenmore"}, nil)
	require.ErrorIs(t, err, ErrLimit)
}

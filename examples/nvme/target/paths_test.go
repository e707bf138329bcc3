package target

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	nvme "github.com/goiwarp/iwarp/examples/nvme/host"
)

// identity is everything by which a host recognises the same disk on two paths.
type identity struct {
	serial, model, subsystem string
	controllers, shared      bool
	names                    capsule.Descriptors
}

// identify asks the target for what a host compares: Linux makes one disk of namespaces for which this is equal while
// the CNTLIDs differ.
func (s *session) identify(t *testing.T, nsid uint32) (id identity, cntlid uint16) {
	page := func(cns uint8, nsid uint32) []byte {
		p := make([]byte, capsule.PageSize)
		s.admin.ok(capsule.Identify{CNS: cns, NSID: nsid}.SQE(0, s.admin.writable(p)))
		return p
	}
	c, err := capsule.ParseIdentifyController(page(capsule.CNSController, 0))
	require.NoError(t, err)
	n, err := capsule.ParseIdentifyNamespace(page(capsule.CNSNamespace, nsid))
	require.NoError(t, err)
	d, err := capsule.ParseDescriptors(page(capsule.CNSDescriptors, nsid))
	require.NoError(t, err)
	return identity{
		c.SN, c.MN, c.SubNQN, c.CMIC&capsule.CMICControllers != 0, n.NMIC&capsule.NMICShared != 0, *d,
	}, c.CNTLID
}

// TestNVME_95_OneDiskOnSeveralPaths: two controllers of a host, and one of another host, see the same namespaces,
// reported as shared. What is written on one path is read on another, also after the first one is lost. The lab tests
// that Linux makes one disk of it.
func TestNVME_95_OneDiskOnSeveralPaths(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		require.NoError(t, w.target.AddNamespace(storage, Namespace{NSID: 7, Backend: memoryOf(t, diskSize), NGUID: [16]byte{7}}))
		a, b := newHost(t, w.addr), newHost(t, w.addr)
		b.nqn += "2"
		paths := []*session{a.connect(1), a.connect(1), b.connect(1)}
		var ids []uint16
		for _, nsid := range []uint32{1, 7} {
			want, _ := paths[0].identify(t, nsid)
			require.True(t, want.controllers)
			require.True(t, want.shared)
			require.NotZero(t, want.names.UUID)
			for _, p := range paths {
				got, cntlid := p.identify(t, nsid)
				require.Equal(t, want, got)
				require.Equal(t, p.cntlid, cntlid)
				ids = append(ids, cntlid)
			}
		}
		one, _ := paths[0].identify(t, 1)
		seven, _ := paths[0].identify(t, 7)
		require.NotEqual(t, one.names, seven.names)
		require.NotEqual(t, ids[0], ids[1])
		require.NotEqual(t, ids[1], ids[2])
		p, got := pattern(lba, 1), make([]byte, lba)
		require.Equal(t, capsule.Success, paths[0].io[0].write(1, p).Status)
		require.NoError(t, paths[0].admin.qp.Abort())
		for _, s := range paths[1:] {
			clear(got)
			require.Equal(t, capsule.Success, s.io[0].read(1, got).Status)
			require.Equal(t, p, got)
		}
	})
}

// TestNVME_95_OurHostOnTwoPaths: the same with this project's host, also after a restart of the target.
func TestNVME_95_OurHostOnTwoPaths(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		_, n := w.attach(nvme.Options{})
		_, m := w.attach(nvme.Options{})
		again := newWorld(t, "pipe", nil, nil)
		_, k := again.attach(nvme.Options{})
		require.Equal(t, n.UUID(), m.UUID())
		require.Equal(t, n.UUID(), k.UUID())
		p, got := pattern(lba, 3), make([]byte, lba)
		_, err := n.WriteAt(p, 0)
		require.NoError(t, err)
		_, err = m.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, p, got)
	})
}

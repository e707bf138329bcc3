package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestDiscoveryControllerWithoutType: a discovery controller older than 1.4, such as Linux 5.10's, reports neither its
// type nor the limits of I/O controllers.
func TestDiscoveryControllerWithoutType(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg, o := newTarget(t), pipeOptions(t)
		d := &tg.discovery
		d.VER, d.CNTRLTYPE, d.KAS, d.IOCCSZ, d.IORCSZ = capsule.Version13, 0, 0, 0, 0
		entries, err := Discover(context.Background(), tg.addr, o)
		require.NoError(t, err)
		require.Len(t, entries, 2)
		_, err = Connect(context.Background(), tg.addr, capsule.DiscoveryNQN, o)
		require.ErrorIs(t, err, capsule.ErrMalformed)
		require.ErrorContains(t, err, "is a discovery subsystem")
	})
}

// TestNamespaceWithoutDescriptors: controllers before 1.3 need not support namespace descriptors, and some later ones do
// not. The identifiers are then those of Identify Namespace.
func TestNamespaceWithoutDescriptors(t *testing.T) {
	for _, x := range []struct {
		version capsule.Version
		status  capsule.Status
		asked   int // for each look
	}{
		{0x00010201, capsule.StatusInvalidOpcode, 0},
		{capsule.Version13, capsule.StatusInvalidOpcode, 1},
		{capsule.Version13, capsule.StatusInvalidField.WithoutDNR(), 1},
	} {
		virtual(t, func(t *testing.T) {
			tg := newTarget(t)
			tg.version = x.version
			v := tg.namespaces[1].clone(func(v *volume) { v.id.NGUID, v.id.EUI64 = [16]byte{1, 2}, [8]byte{3, 4} })
			tg.replace(1, v)
			tg.refuses(capsule.CNSDescriptors, x.status, always)
			c := connect(t, tg, pipeOptions(t))
			begin := time.Now()
			n := disk(t, c)
			require.Equal(t, v.id.NGUID, n.NGUID())
			require.Equal(t, v.id.EUI64, n.EUI64())
			require.Zero(t, n.UUID())
			require.Zero(t, time.Since(begin), "to ask again is in vain")
			_, err := n.WriteAt(pattern(4096, 1), 0)
			require.NoError(t, err)

			require.NoError(t, c.Reset(context.Background()))
			require.NoError(t, n.Err(), "it is the same one")
			require.Equal(t, 2*x.asked, tg.asked(capsule.CNSDescriptors))
			tg.replace(1, v.clone(func(v *volume) { v.id.NGUID[0]++ }))
			require.NoError(t, c.Reset(context.Background()))
			require.ErrorIs(t, n.Err(), ErrReplaced)
		})
	}
}

// TestIdentifiersOfBoth: identifiers missing in the descriptors come from Identify Namespace.
func TestIdentifiersOfBoth(t *testing.T) {
	virtual(t, func(t *testing.T) {
		tg := newTarget(t)
		tg.replace(1, tg.namespaces[1].clone(func(v *volume) {
			v.id.NGUID, v.id.EUI64 = [16]byte{1, 2}, [8]byte{3, 4}
			v.names = capsule.Descriptors{UUID: [16]byte{5, 6}, EUI64: [8]byte{7, 8}}
		}))
		n := disk(t, connect(t, tg, pipeOptions(t)))
		require.Equal(t, [16]byte{5, 6}, n.UUID())
		require.Equal(t, [16]byte{1, 2}, n.NGUID())
		require.Equal(t, [8]byte{7, 8}, n.EUI64())
	})
}

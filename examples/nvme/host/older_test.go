package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A discovery controller of a version before 1.4, such as that of Linux 5.10, tells neither its type nor the limits that I/O
// controllers have.
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

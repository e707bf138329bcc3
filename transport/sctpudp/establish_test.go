package sctpudp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAssociationThatHasNoPlace leaves nothing: another one has its tag, or the Listener has ended. The other one goes on.
func TestAssociationThatHasNoPlace(t *testing.T) {
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	defer l.End()
	ours, theirs := newInitiation(), newInitiation()
	makes := func(port uint16) (*association, error) {
		w := way{peer: netip.MustParseAddrPort("127.0.0.1:9")}
		return l.e.establish(w, port, &ours, &theirs, time.Millisecond, l, false)
	}
	a, err := makes(7)
	require.NoError(t, err)
	_, err = makes(8)
	require.ErrorIs(t, err, errTag)
	require.NoError(t, a.Err())
	require.Equal(t, 1, l.e.count())
	l.End()
	require.Error(t, a.Err())
	_, err = makes(8)
	require.ErrorIs(t, err, net.ErrClosed)
}

package setup

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// TestLayerIsEstablishedAtOnce: nothing is exchanged, and the depths are this side's.
func TestLayerIsEstablishedAtOnce(t *testing.T) {
	m := New(Config{Closed: errClosed})
	defer m.Close()
	a, b := recordpipe.New(recordpipe.Options{})
	defer b.Abort(nil)
	var got transport.LLP
	l := &Local{
		IRD: 3, ORD: -1,
		Prepare: func(context.Context) error { return nil },
		Establish: func(_ context.Context, llp transport.LLP, terms *mpa.Terms) error {
			got = llp
			require.Equal(t, &mpa.Terms{IRD: 3, PeerIRD: -1, PeerORD: -1}, terms)
			return nil
		},
	}
	y := &Layer{LLP: a}
	require.NoError(t, m.Client(t.Context(), y, l))
	require.Same(t, a, got)
	require.Equal(t, b.RemoteAddr(), y.LocalAddr())
	require.Equal(t, b.LocalAddr(), y.RemoteAddr())

	unready := errors.New("not ready")
	l.Prepare = func(context.Context) error { return unready }
	require.ErrorIs(t, m.Client(t.Context(), y, l), unready)
	require.True(t, b.Append([]byte("x"), nil, true))
	require.Error(t, b.Flush(false), "the LLP was aborted")
	require.ErrorIs(t, y.Close(), net.ErrClosed)
}

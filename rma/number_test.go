package rma

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// TestRMA_40_AnotherRegionOfTheNumberIsOpened: data sealed for a closed region cannot be opened for the region that has its
// number now.
func TestRMA_40_AnotherRegionOfTheNumberIsOpened(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := start(t, p)
				h, portal := w.opens(), w.portal(1)
				require.NoError(t, does(t, portal, Command{Op: Write, Handle: h, Buf: octets(1, 16)}).Err)
				require.NoError(t, w.region.Close())
				other := NewMemory(octets(7, 64))
				_, err := w.server.Register(regionID, other, nil)
				require.NoError(t, err)
				require.NoError(t, h.Reopen(t.Context()))
				require.NoError(t, does(t, portal, Command{Op: Write, Handle: h, Buf: octets(1, 16)}).Err)
			})
		})
	}
}

// TestRMA_13_RightsOfASink: the peer may write there, but not read what others have written.
func TestRMA_13_RightsOfASink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := plays(t, plan{})
		pull := r.pulls(2, 16)
		c := w.servedConn()
		c.mu.Lock()
		var access []stag.Access
		for _, l := range c.leases.all {
			if l.role == op.ServerRole {
				access = append(access, l.access)
			}
		}
		c.mu.Unlock()
		require.NotEmpty(t, access)
		for _, a := range access {
			require.Equal(t, stag.LocalWrite|stag.RemoteWrite, a)
		}
		r.answers(2, pull, octets(1, 16), regionkey.AAD{Salt: pull.Salt}, nil)
		r.receives(wire.TypeWriteDone)
		r.ends(w)
	})
}

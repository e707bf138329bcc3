package cm

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHealthIsInTheOrderOfAddresses: so that two reports can be compared.
func TestHealthIsInTheOrderOfAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPool(t, nil)
		var want []string
		for range 8 {
			h := listens(t, "pipe", "", time.Second)
			p.mustGet(t, h).Release(false)
			want = append(want, h.addr)
		}
		slices.Sort(want)
		var got []string
		for _, h := range p.Health() {
			got = append(got, h.Addr)
		}
		require.Equal(t, want, got)
	})
}

// TestHealthOfALeasedQPThatHasEnded: the peer has no QP any more, before the lease is released.
func TestHealthOfALeasedQPThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, nil)
		l := p.mustGet(t, h)
		synctest.Wait()
		h.aborts()
		synctest.Wait()
		health := p.Health()[0]
		require.Zero(t, health.QPs)
		require.Zero(t, health.Leased)
		require.Error(t, health.Err)
		require.Equal(t, time.Second, time.Until(health.Next), "that is the back-off")
		l.Release(false)
	})
}

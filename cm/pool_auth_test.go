package cm

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestCM_59_KeysOfAPool: a rotation does not affect existing QPs, and later set-ups use the new key. A
// server whose key was removed stays connected until Drain, and cannot be reached afterwards.
func TestCM_59_KeysOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := Key{ID: 1, Secret: octets(1, 32), Primary: true}
		second := Key{ID: 2, Secret: octets(2, 32), Primary: true}
		former := first
		former.Primary = false
		ring := func(keys ...Key) *Ring {
			r, err := NewRing(keys...)
			require.NoError(t, err)
			return r
		}
		ours, theirs := ring(first), ring(first)
		client, err := New(&Config{Ring: ours, ID: testClientID})
		require.NoError(t, err)
		server, err := New(&Config{Ring: theirs, ID: testServerID})
		require.NoError(t, err)
		h := listensWith(t, "pipe", "", 0, &iwarp.ListenConfig{Auth: server})
		p, _ := newTestPool(t, func(c *PoolConfig) {
			c.QP.Auth, c.QP.MPA = client, iwarp.MPAOptions{}
			c.PerPeer = 2
		})
		keyOf := func(l *Lease) uint64 {
			peer, known := l.QP().Peer()
			require.True(t, known)
			return peer.KeyID
		}
		l := p.mustGet(t, h)
		require.EqualValues(t, 1, keyOf(l))

		require.NoError(t, theirs.Replace(second, former))
		require.NoError(t, ours.Replace(second))
		later := p.mustGet(t, h)
		require.EqualValues(t, 2, keyOf(later))
		require.NotSame(t, l.QP(), later.QP())
		require.NoError(t, theirs.Replace(second))
		time.Sleep(time.Minute)
		require.Equal(t, iwarp.StateRTS, l.QP().State(), "of a key that is gone")

		require.NoError(t, ours.Replace(Key{ID: 3, Secret: octets(3, 32), Primary: true}))
		require.Equal(t, iwarp.StateRTS, later.QP().State())
		l.Release(false)
		later.Release(false)
		require.NoError(t, p.Drain(t.Context(), h.addr))
		<-l.QP().Done()
		<-later.QP().Done()
		_, err = p.getWithin(h.addr, 10*time.Second)
		require.ErrorIs(t, err, iwarp.ErrAuth)
	})
}

package cm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestManyPeersAreLookedThroughSeldom: if more peers are requested than the pool has QPs, none of them can be
// forgotten, and one more must not cost a scan of all of them.
func TestManyPeersAreLookedThroughSeldom(t *testing.T) {
	p, _ := newTestPool(t, func(c *PoolConfig) { c.Max = 4 })
	p.mu.Lock()
	defer p.mu.Unlock()
	looks, last := 0, 0
	for i := range 1000 {
		r := p.peer(peerName{"pipe", fmt.Sprint("asked", i)})
		r.waiting = []waiter{{answer: make(chan grant, 1)}}
		if p.needed != last {
			looks++
			last = p.needed
		}
	}
	require.Len(t, p.peers, 1000)
	require.Less(t, looks, 10)
	for i := range 2000 {
		p.peer(peerName{"pipe", fmt.Sprint("failed", i)}).failures = 1
	}
	require.LessOrEqual(t, len(p.peers), 2000, "those that have failed are forgotten all the same")
	clear(p.peers)
}

// TestGetsOfOnePeerAreServedInPlace: serving one of many waiters does not move the others.
func TestGetsOfOnePeerAreServedInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		p, _ := newTestPool(t, func(c *PoolConfig) { c.PerPeer = 2 })
		leases := []*Lease{p.mustGet(t, h), p.mustGet(t, h)}
		got := make(chan *Lease, 3)
		for range cap(got) {
			go func() { got <- p.mustGet(t, h) }()
		}
		waiting := func() []waiter {
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.peers[peerName{"pipe", h.addr}].waiting
		}
		before := waiting()
		second := before[1]
		leases[0].Release(false)
		after := waiting()
		leases[1].Release(false)
		for range cap(got) {
			(<-got).Release(false)
		}
		require.Len(t, before, 3)
		require.Len(t, after, 2)
		require.Same(t, &before[1], &after[0])
		require.NotEqual(t, second, before[0])
		require.Zero(t, before[0], "what was served is not kept")
	})
}

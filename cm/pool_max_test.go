package cm

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCM_56_58_BusyPeersGiveUpTheirQPs: in turn, if Max allows no more for a peer that has none.
func TestCM_56_58_BusyPeersGiveUpTheirQPs(t *testing.T) {
	for name, perPeer := range map[string]int{"shared": 1, "exclusive": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy, others := listens(t, "pipe", "", time.Millisecond), []*host{listens(t, "pipe", "", time.Millisecond), listens(t, "pipe", "", time.Millisecond)}
				p, _ := newTestPool(t, func(c *PoolConfig) { c.Max, c.PerPeer = 2, perPeer })
				held := p.mustGet(t, others[0])
				defer held.Release(false)
				defer keepBusy(t, p, 8, busy)()
				time.Sleep(time.Second)
				for range 10 {
					l, err := p.getWithin(others[1].addr, 2*idleWait)
					require.NoError(t, err)
					l.Release(false)
					time.Sleep(idleWait)
				}
			})
		})
	}
}

// keepBusy begins n users for each host: there is always one that has a QP, and one that waits for it. The returned function
// ends them.
func keepBusy(t *testing.T, p *Pool, n int, hosts ...*host) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var users sync.WaitGroup
	for i := range n * len(hosts) {
		users.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			for ctx.Err() == nil {
				l, err := p.Get(ctx, "pipe", hosts[i%len(hosts)].addr)
				if err == nil {
					time.Sleep(5 * time.Millisecond)
					l.Release(false)
				}
			}
		})
	}
	return func() {
		cancel()
		users.Wait()
	}
}

// TestCM_56_58_BusyPeersGiveUpTheirQPsTogether: if several peers wait, they do so at the same time, not one after the other.
func TestCM_56_58_BusyPeersGiveUpTheirQPsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := make([]*host, 8)
		for i := range hosts {
			hosts[i] = listens(t, "pipe", "", time.Millisecond)
		}
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Max = 4 })
		defer keepBusy(t, p, 2, hosts[:4]...)()
		time.Sleep(time.Second)
		got := make(chan error)
		for _, h := range hosts[4:] {
			go func() {
				l, err := p.getWithin(h.addr, 2*idleWait)
				got <- err
				if err == nil {
					time.Sleep(4 * idleWait)
					l.Release(false)
				}
			}()
		}
		for range hosts[4:] {
			require.NoError(t, <-got)
		}
	})
}

// TestCM_56_58_OnePeerGivesUpItsQP: for one peer that waits, only one gives up its QP.
func TestCM_56_58_OnePeerGivesUpItsQP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := make([]*host, 4)
		for i := range hosts {
			hosts[i] = listens(t, "pipe", "", 20*time.Millisecond)
		}
		var setups atomic.Int64
		p, _ := newTestPool(t, func(c *PoolConfig) { inSetup(&setups)(c); c.Max = 3 })
		var leases []*Lease
		for _, h := range hosts[:3] {
			leases = append(leases, p.mustGet(t, h))
		}
		defer keepBusy(t, p, 2, hosts[:3]...)()
		setups.Store(0)
		got := make(chan *Lease)
		go func() { got <- p.mustGet(t, hosts[3]) }()
		time.Sleep(3 * idleWait / 2)
		for _, l := range leases {
			l.Release(false)
		}
		l := <-got
		defer l.Release(false)
		time.Sleep(idleWait / 2)
		require.EqualValues(t, 1, setups.Load())
	})
}

// TestCM_56_58_LongLeaseOfARetiredQP: the pool does not wait for it, and another peer gives up its QP.
func TestCM_56_58_LongLeaseOfARetiredQP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leased, busy, third := listens(t, "pipe", "", time.Millisecond), listens(t, "pipe", "", time.Millisecond), listens(t, "pipe", "", time.Millisecond)
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Max = 2 })
		held := p.mustGet(t, leased)
		defer held.Release(false)
		defer keepBusy(t, p, 2, leased, busy)()
		time.Sleep(time.Second)
		l, err := p.getWithin(third.addr, 3*idleWait)
		require.NoError(t, err)
		l.Release(false)
		_, err = p.getWithin(leased.addr, idleWait)
		require.ErrorIs(t, err, context.DeadlineExceeded, "its QP is retired")
	})
}

// TestCM_56_58_PeerThatWaitsAndLosesItsQP: from then on others give up a QP for it, as for a peer that never had one.
func TestCM_56_58_PeerThatWaitsAndLosesItsQP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, busy, third := listens(t, "pipe", "", time.Millisecond), listens(t, "pipe", "", time.Millisecond), listens(t, "pipe", "", time.Millisecond)
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Max, c.PerPeer = 2, 2 })
		held := p.mustGet(t, peer)
		defer keepBusy(t, p, 8, busy)()
		time.Sleep(time.Second)
		got := make(chan error, 1)
		go func() {
			l, err := p.getWithin(peer.addr, 2*time.Second) // the back-off is a second
			got <- err
			if err == nil {
				l.Release(false)
			}
		}()
		synctest.Wait()
		defer keepBusy(t, p, 8, third)()
		time.Sleep(idleWait / 2)
		held.Release(true) // its place is that of the third peer
		require.NoError(t, <-got)
	})
}

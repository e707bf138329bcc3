package cm

import (
	"context"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// newTestPool makes a pool in a bubble, and closes it at the end of the test.
func newTestPool(t *testing.T, change func(c *PoolConfig)) (*Pool, *end) {
	t.Helper()
	client := newEnd(t, iwarp.Limits{})
	c := &PoolConfig{RNIC: client.rnic, QP: client.config(), Backoff: func(n int) time.Duration { return time.Duration(n) * time.Second }}
	if change != nil {
		change(c)
	}
	p, err := NewPool(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.Close()
		client.waitsUntilIdle()
		require.Zero(t, p.total)
		require.Zero(t, p.closing)
	})
	return p, client
}

func (p *Pool) mustGet(t *testing.T, h *host) *Lease {
	t.Helper()
	l, err := p.Get(t.Context(), "pipe", h.addr)
	require.NoError(t, err)
	return l
}

// getWithin is Get with a limit.
func (p *Pool) getWithin(addr string, d time.Duration) (*Lease, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return p.Get(ctx, "pipe", addr)
}

// inSetup counts the set-ups of a pool that have begun.
func inSetup(n *atomic.Int64) func(*PoolConfig) {
	return func(c *PoolConfig) {
		c.QP.SetupTrace = &iwarp.SetupTrace{Enter: func(_ context.Context, s iwarp.SetupStage) error {
			if s == iwarp.StageDial {
				n.Add(1)
			}
			return nil
		}}
	}
}

// TestCM_56_ConcurrentGetsShareASetUp: and the QP.
func TestCM_56_ConcurrentGetsShareASetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Second)
		var setups atomic.Int64
		p, _ := newTestPool(t, inSetup(&setups))
		setups.Store(0) // without the check of the configuration
		leases := make([]*Lease, 50)
		var all sync.WaitGroup
		for i := range leases {
			all.Go(func() { leases[i] = p.mustGet(t, h) })
		}
		all.Wait()
		for _, l := range leases {
			require.Same(t, leases[0].QP(), l.QP())
		}
		require.EqualValues(t, 1, setups.Load())
		require.Equal(t, []PeerHealth{{Network: "pipe", Addr: h.addr, QPs: 1, Leased: 1}}, p.Health())
		for _, l := range leases {
			l.Release(false)
			l.Release(true) // does nothing
		}
		require.Equal(t, []PeerHealth{{Network: "pipe", Addr: h.addr, QPs: 1}}, p.Health())
		require.Same(t, leases[0].QP(), p.mustGet(t, h).QP())
	})
}

// TestCM_60_CheckOfAConfigurationIsNoFailure: it does not count as a set-up that failed.
func TestCM_60_CheckOfAConfigurationIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := newTestPool(t, nil)
		require.Zero(t, client.rnic.Stats().Failed)
	})
}

// TestCM_56_ExclusiveLeases: many users take turns with a few QPs.
func TestCM_56_ExclusiveLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		var setups atomic.Int64
		p, _ := newTestPool(t, func(c *PoolConfig) { inSetup(&setups)(c); c.PerPeer = 4 })
		setups.Store(0)
		var mu sync.Mutex
		having := make(map[*iwarp.QP]bool)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				l := p.mustGet(t, h)
				mu.Lock()
				require.False(t, having[l.QP()])
				having[l.QP()] = true
				require.LessOrEqual(t, len(having), 4)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				delete(having, l.QP())
				mu.Unlock()
				l.Release(false)
			})
		}
		all.Wait()
		require.EqualValues(t, 4, setups.Load())
		require.Equal(t, 4, p.Health()[0].QPs)
	})
}

// TestCM_56_58_MaxOfAll: the least recently used idle QP is closed, and never one that
// is leased.
func TestCM_56_58_MaxOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts []*host
		for range 5 {
			hosts = append(hosts, listens(t, "pipe", "", time.Millisecond))
		}
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Max = 3 })
		var leases []*Lease
		for _, h := range hosts[:3] {
			leases = append(leases, p.mustGet(t, h))
		}
		_, err := p.getWithin(hosts[3].addr, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded, "all are leased")
		leases[1].Release(false)
		time.Sleep(time.Millisecond)
		leases[0].Release(false)
		p.mustGet(t, hosts[3]).Release(false)
		require.Equal(t, iwarp.StateRTS, leases[0].QP().State(), "used after the one that has gone")
		require.NotEqual(t, iwarp.StateRTS, leases[1].QP().State())
		require.Equal(t, iwarp.StateRTS, leases[2].QP().State())

		again := p.mustGet(t, hosts[0])
		another := p.mustGet(t, hosts[3])
		got := make(chan *Lease)
		go func() { got <- p.mustGet(t, hosts[4]) }()
		synctest.Wait()
		require.Empty(t, got)
		again.Release(false)
		l := <-got
		require.NotEqual(t, iwarp.StateRTS, again.QP().State(), "it is released, and another peer waits")
		l.Release(false)
		another.Release(false)
		leases[2].Release(false)
	})
}

// TestCM_57_EndedQPIsNotHandedOutAgain: however the end is noticed. The next one is set up after the back-off.
func TestCM_57_EndedQPIsNotHandedOutAgain(t *testing.T) {
	for name, ends := range map[string]func(h *host, l *Lease){
		"released as broken":      func(_ *host, l *Lease) { l.Release(true) },
		"ended while leased":      func(h *host, l *Lease) { h.aborts(); synctest.Wait(); l.Release(false) },
		"ended while idle":        func(h *host, l *Lease) { l.Release(false); h.aborts(); synctest.Wait() },
		"ended, and not released": func(h *host, l *Lease) { h.aborts(); synctest.Wait() },
		"found by Health": func(h *host, l *Lease) {
			l.Release(false)
			h.aborts()
			synctest.Wait()
			l.pool.Health()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := listens(t, "pipe", "", 0)
				p, _ := newTestPool(t, nil)
				first := p.mustGet(t, h)
				synctest.Wait()
				ends(h, first)
				start := time.Now()
				second := p.mustGet(t, h)
				require.NotSame(t, first.QP(), second.QP())
				require.Equal(t, time.Second, time.Since(start), "that is the back-off")
				second.Release(false)
				require.Nil(t, p.Health()[0].Err)
				first.Release(true)
				require.Equal(t, iwarp.StateRTS, second.QP().State())
			})
		})
	}
}

// TestCM_57_FailuresAtTheSameTimeAreOne: and not as many in a row, if QPs have ended together, or set-ups were refused
// together.
func TestCM_57_FailuresAtTheSameTimeAreOne(t *testing.T) {
	for name, fail := range map[string]func(p *Pool, h *host, leases []*Lease){
		"leased": func(_ *Pool, h *host, leases []*Lease) {
			h.aborts()
			synctest.Wait()
			for _, l := range leases {
				l.Release(false)
			}
		},
		"idle": func(_ *Pool, h *host, leases []*Lease) {
			for _, l := range leases {
				l.Release(false)
			}
			h.aborts()
			synctest.Wait()
		},
		"refused": func(p *Pool, h *host, leases []*Lease) {
			for _, l := range leases {
				l.Release(false)
			}
			_ = p.Drain(context.Background(), "")
			h.refuses(true)
			for range leases {
				go func() { _, _ = p.getWithin(h.addr, time.Millisecond) }()
			}
			synctest.Wait()
			h.refuses(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := listens(t, "pipe", "", 0)
				p, _ := newTestPool(t, func(c *PoolConfig) { c.PerPeer = 4 })
				var leases []*Lease
				for range 4 {
					leases = append(leases, p.mustGet(t, h))
				}
				synctest.Wait()
				start := time.Now()
				fail(p, h, leases)
				p.mustGet(t, h).Release(false)
				require.Equal(t, time.Second, time.Since(start), "the back-off of the first failure")
			})
		})
	}
}

// TestCM_57_BrokenLeaseOfARetiredQP: the QP is aborted, because its outstanding work requests would never end.
func TestCM_57_BrokenLeaseOfARetiredQP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, nil)
		l := p.mustGet(t, h)
		require.NoError(t, l.QP().PostRecv(iwarp.RecvWR{}))
		require.NoError(t, l.QP().PostSend(iwarp.SendWR{Op: iwarp.OpSend})) // there is no receive for it
		synctest.Wait()
		start := time.Now()
		drained := make(chan error)
		go func() { drained <- p.Drain(t.Context(), h.addr) }()
		synctest.Wait()
		l.Release(true)
		require.NoError(t, <-drained)
		require.Zero(t, time.Since(start))
	})
}

// TestPoolOfOneNetwork: a configuration that is valid for one network is enough for a pool. A Get over another network
// returns what is wrong for that.
func TestPoolOfOneNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, func(c *PoolConfig) { c.QP.PrivateData = make([]byte, 400) }) // valid for SCTP
		_, err := p.getWithin(h.addr, time.Millisecond)
		require.ErrorContains(t, err, "400 octets of private data")
	})
}

// TestCM_57_OthersKeepABrokenSharedQP: until they release it.
func TestCM_57_OthersKeepABrokenSharedQP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, nil)
		one, other := p.mustGet(t, h), p.mustGet(t, h)
		one.Release(true)
		require.Equal(t, iwarp.StateRTS, other.QP().State())
		_, err := p.getWithin(h.addr, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded, "PerPeer is 1")
		require.ErrorIs(t, err, errBroken)
		other.Release(false)
		third := p.mustGet(t, h)
		require.NotSame(t, one.QP(), third.QP())
		third.Release(false)
	})
}

// TestCM_57_BackOffGrows: with each failure, including failures of QPs that end at once. A Get that gives
// up returns the last cause.
func TestCM_57_BackOffGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		h.refuses(true)
		var setups atomic.Int64
		p, _ := newTestPool(t, inSetup(&setups))
		setups.Store(0)
		start := time.Now()
		_, err := p.getWithin(h.addr, 6500*time.Millisecond) // at 0, 1, 1+2, 1+2+3
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, iwarp.ErrRejected)
		require.EqualValues(t, 4, setups.Load())
		health := p.Health()[0]
		require.ErrorIs(t, health.Err, iwarp.ErrRejected)
		require.Equal(t, 10*time.Second, health.Next.Sub(start))
		time.Sleep(time.Hour)
		require.EqualValues(t, 4, setups.Load(), "no Get waits")

		h.refuses(false)
		l := p.mustGet(t, h)
		synctest.Wait()
		h.aborts()
		synctest.Wait()
		l.Release(false)
		start = time.Now()
		l = p.mustGet(t, h)
		require.Equal(t, 5*time.Second, time.Since(start), "it has not proved to work")
		l.Release(false)
		l = p.mustGet(t, h)
		synctest.Wait()
		h.aborts()
		synctest.Wait()
		l.Release(false)
		start = time.Now()
		p.mustGet(t, h).Release(false)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// TestCM_57_60_WhatCannotGetBetterIsAnErrorAtOnce: Get does not try again.
func TestCM_57_60_WhatCannotGetBetterIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, client := newTestPool(t, nil)
		_, err := p.Get(t.Context(), "udp", "127.0.0.1:1")
		var unknown net.UnknownNetworkError
		require.ErrorAs(t, err, &unknown)
		_, err = p.Get(t.Context(), "tcp", "127.0.0.1")
		require.ErrorContains(t, err, "missing port")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = p.Get(ctx, "tcp", "127.0.0.1:no-such-service")
		require.ErrorContains(t, err, "unknown port")
		require.NoError(t, ctx.Err())
		require.Empty(t, p.Health())
		for _, c := range []*PoolConfig{
			nil,
			{},
			{RNIC: client.rnic},
			{RNIC: client.rnic, QP: client.config(), Max: -1},
			{RNIC: client.rnic, QP: &iwarp.QPConfig{PD: client.pd, SendDepth: -1}},
			{RNIC: client.rnic, QP: &iwarp.QPConfig{PD: client.pd, SendDepth: client.rnic.Limits().MaxQueueDepth + 1}},
			{RNIC: client.rnic, QP: &iwarp.QPConfig{PD: client.pd, RecvDepth: client.rnic.Limits().MaxQueueDepth + 1}},
			{RNIC: client.rnic, QP: &iwarp.QPConfig{PD: client.pd, IRD: client.rnic.Limits().MaxIRD + 1}},
			{RNIC: client.rnic, QP: &iwarp.QPConfig{PD: client.pd, ORD: client.rnic.Limits().MaxORD + 1}},
		} {
			_, err := NewPool(c)
			require.Error(t, err)
		}
	})
}

// TestCM_57_BrokenIsAborted: the peer sees no graceful end.
func TestCM_57_BrokenIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, nil)
		for _, broken := range []bool{false, true} {
			l := p.mustGet(t, h)
			synctest.Wait() // the host has its QP, too
			h.mu.Lock()
			theirs := h.qps[len(h.qps)-1]
			h.mu.Unlock()
			l.Release(broken)
			require.NoError(t, p.Drain(t.Context(), h.addr))
			<-theirs.Done()
			require.Equal(t, broken, theirs.Err() != nil)
		}
	})
}

// TestCM_58_IdleIsClosed: but a leased QP is not.
func TestCM_58_IdleIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := listens(t, "pipe", "", 0), listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Idle = DefaultIdle })
		one, other := p.mustGet(t, a), p.mustGet(t, b)
		one.Release(false)
		time.Sleep(DefaultIdle - time.Second)
		again := p.mustGet(t, a)
		require.Same(t, one.QP(), again.QP())
		time.Sleep(time.Hour)
		require.Equal(t, iwarp.StateRTS, one.QP().State())
		other.Release(false)
		time.Sleep(DefaultIdle - time.Second)
		require.Equal(t, iwarp.StateRTS, other.QP().State())
		time.Sleep(2 * time.Second)
		require.NotEqual(t, iwarp.StateRTS, other.QP().State())
		time.Sleep(2 * time.Second)
		require.Len(t, p.Health(), 1)
		p.mustGet(t, b).Release(false)
		time.Sleep(time.Minute)
		again.Release(false)
		time.Sleep(DefaultIdle + 3*time.Second)
		require.Empty(t, p.Health(), "each has its time")
	})
}

// TestCM_56_ASetUpThatFailsMakesRoom for a peer that waits.
func TestCM_56_ASetUpThatFailsMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gone := listens(t, "pipe", "", 0), dead(t, "gone:1")
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Max = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := p.Get(ctx, "pipe", gone)
			failed <- err
		}()
		synctest.Wait()
		p.mustGet(t, h).Release(false)
		require.NoError(t, ctx.Err())
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
	})
}

// TestCM_58_59_Drain waits for leases until its context ends, then aborts; a Get sets up a new QP.
func TestCM_58_59_Drain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, other := listens(t, "pipe", "", 0), listens(t, "pipe", "", 0)
		p, _ := newTestPool(t, nil)
		l, stays := p.mustGet(t, h), p.mustGet(t, other)
		h.closes()
		time.AfterFunc(time.Second, func() { l.Release(false) })
		start := time.Now()
		require.NoError(t, p.Drain(t.Context(), h.addr))
		require.Equal(t, time.Second, time.Since(start))
		<-l.QP().Done()
		require.Equal(t, iwarp.StateRTS, stays.QP().State())

		l = p.mustGet(t, h)
		require.Equal(t, iwarp.StateRTS, l.QP().State())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Drain(ctx, h.addr), context.DeadlineExceeded)
		<-l.QP().Done()
		l.Release(false)
		stays.Release(false)
	})
}

// TestCM_58_59_DrainEndsSetUps: they may have begun with a revoked key. A Get that waits gets a QP
// of a later set-up.
func TestCM_58_59_DrainEndsSetUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Second)
		p, _ := newTestPool(t, nil)
		got := make(chan *Lease)
		go func() { got <- p.mustGet(t, h) }()
		time.Sleep(time.Second / 2)
		start := time.Now()
		require.NoError(t, p.Drain(t.Context(), ""))
		require.Zero(t, time.Since(start))
		(<-got).Release(false)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// TestCM_58_59_DrainEndsAQPThatIsSetUpAllTheSame: the set-up ended before it could be cancelled.
func TestCM_58_59_DrainEndsAQPThatIsSetUpAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		var p *Pool
		drained := make(chan error, 1)
		var ready atomic.Int32
		p, _ = newTestPool(t, func(c *PoolConfig) {
			c.QP.SetupTrace = &iwarp.SetupTrace{Leave: func(s iwarp.SetupStage, _ error) {
				if s == iwarp.StageReady && ready.Add(1) == 1 {
					go func() { drained <- p.Drain(context.Background(), h.addr) }()
					synctest.Wait() // for Drain, which waits for the QP
				}
			}}
		})
		l := p.mustGet(t, h)
		require.NoError(t, <-drained)
		require.Equal(t, iwarp.StateRTS, l.QP().State(), "that of a later set-up")
		require.EqualValues(t, 2, ready.Load())
		l.Release(false)
	})
}

// TestCM_58_Close ends everything: Gets that wait, set-ups, and at last leases.
func TestCM_58_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gone := listens(t, "pipe", "", 0), dead(t, "gone:1")
		p, _ := newTestPool(t, nil)
		l := p.mustGet(t, h)
		errs := make(chan error)
		for _, addr := range []string{gone, "absent:1"} {
			go func() {
				_, err := p.getWithin(addr, time.Hour)
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		go func() { errs <- p.Close() }()
		require.ErrorIs(t, <-errs, net.ErrClosed)
		require.ErrorIs(t, <-errs, net.ErrClosed)
		require.ErrorIs(t, <-errs, context.DeadlineExceeded, "the lease is not released")
		require.Equal(t, closeLeases, time.Since(start))
		<-l.QP().Done()
		l.Release(false)
		require.NoError(t, p.Close())
		_, err := p.Get(t.Context(), "pipe", h.addr)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestCM_56_Warm sets up QPs before the first Get.
func TestCM_56_Warm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, other := listens(t, "pipe", "", time.Second), listens(t, "pipe", "", time.Second)
		p, _ := newTestPool(t, nil)
		n := 0
		for target, r := range p.Warm(t.Context(), pipes(2, h.addr, other.addr, "absent:1")) {
			n++
			require.Nil(t, r.QP)
			require.Equal(t, target.Addr == "absent:1", r.Err != nil)
			if r.Err != nil {
				require.Equal(t, StageDial, r.Stage)
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			}
		}
		require.Equal(t, 6, n)
		start := time.Now()
		p.mustGet(t, h).Release(false)
		p.mustGet(t, other).Release(false)
		require.Zero(t, time.Since(start))
	})
}

// TestCM_57_FailuresOfManyPeersAreForgotten: so that memory is bounded.
func TestCM_57_FailuresOfManyPeersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPool(t, func(c *PoolConfig) { c.Max = 4 })
		for _, target := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			_, err := p.getWithin(target, time.Millisecond)
			require.Error(t, err)
		}
		require.LessOrEqual(t, len(p.Health()), 8)
	})
}

// TestCM_57_FailuresAreRememberedWithoutAMax: a pool may have any number of QPs.
func TestCM_57_FailuresAreRememberedWithoutAMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var setups atomic.Int64
		p, _ := newTestPool(t, func(c *PoolConfig) {
			inSetup(&setups)(c)
			c.Max = math.MaxInt
		})
		setups.Store(0) // a pool checks its configuration by a set-up
		for _, target := range []string{"a", "b", "a"} {
			_, err := p.getWithin(target, time.Millisecond)
			require.Error(t, err)
		}
		require.EqualValues(t, 2, setups.Load(), "the back-off of the first is not over")
	})
}

// TestCM_57_SetupThatEndsItsGoroutine: the set-up has failed. Get says so, and Close does not wait for it.
func TestCM_57_SetupThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		qc := client.config()
		qc.Setup = func(context.Context, *iwarp.QP) error { runtime.Goexit(); return nil }
		p, err := NewPool(&PoolConfig{RNIC: client.rnic, QP: qc, Backoff: func(int) time.Duration { return time.Hour }})
		require.NoError(t, err)
		_, err = p.getWithin(h.addr, time.Second)
		require.ErrorIs(t, err, errSetupEnded)
		require.NoError(t, p.Close())
	})
}

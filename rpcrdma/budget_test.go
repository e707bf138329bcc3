package rpcrdma

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A many is a host whose clients have one budget.
type many struct {
	*host
	shared *shared
}

func newMany(t testing.TB, cfg Config) *many {
	t.Helper()
	h := newHost(t, "pipe", cfg)
	s, err := newShared(&h.cfg)
	require.NoError(t, err)
	return &many{host: h, shared: s}
}

func (m *many) connect(change ...func(*iwarp.QPConfig)) *client {
	m.Helper()
	accepted := make(chan *Conn, 1)
	go func() {
		defer close(accepted)
		cr, err := m.l.Accept(within(m.TB))
		if err != nil {
			return
		}
		if c, err := m.shared.accept(within(m.TB), cr, nil); err == nil {
			accepted <- c
		}
	}()
	c, err := m.dial(linux, change...)
	require.NoError(m, err)
	c.conn = <-accepted
	require.NotNil(m, c.conn)
	m.Cleanup(func() {
		_ = c.conn.qp.Abort()
		<-c.conn.Done()
	})
	return c
}

// TestRPR_14_Budget: 64 clients request much more memory than there is, and do not answer the Reads. Memory stays within
// MaxBytes, and a client that answers gets its turn.
func TestRPR_14_Budget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit = 16 << 20
		m := newMany(t, Config{MaxBytes: limit})
		honest := m.connect()
		for range 64 {
			c := m.connect()
			r, _ := c.stuck(1 << 20)
			c.asksOfStuck(r, 5)
		}
		synctest.Wait()
		used := m.shared.calls.inUse()
		require.LessOrEqual(t, used, limit/2)
		require.Greater(t, used, limit/2-2<<20, "all of it is in use")
		for c := range m.shared.calls.accounts() {
			require.LessOrEqual(t, c.used, limit/maxShare)
		}
		honest.serves() // inline calls need none of it

		began := time.Now()
		r := honest.exposes(1<<20, true)
		copy(r.mem, rpc(0x99, 7))
		honest.send((&wire.Header{XID: 0x99, Proc: wire.NoMsg, Reads: r.reads(0)}).Append(nil))
		k := honest.next()
		require.Len(t, k.Message(), 1<<20)
		require.Greater(t, time.Since(began), 30*time.Second, "the others had to be ended")
		honest.reply(k, accepted(0x99))
		honest.recv()
	})
}

// fewCalls is a budget of four calls.
var fewCalls = Config{MaxCall: 1 << 20, MaxBytes: 8 << 20}

// asks posts a call whose chunk is all of a region.
func (c *client) asks(r *region) {
	c.Helper()
	h := c.header()
	copy(r.mem, rpc(h.XID, 7))
	h.Proc, h.Reads = wire.NoMsg, r.reads(0)
	c.post(h.Append(nil))
}

// asksOfStuck posts calls whose chunk is all of a region that is stuck. The goroutine that posts may also send responses to
// Reads, and does not return then before the region is released. So the test's own goroutine does not post.
func (c *client) asksOfStuck(r *region, calls int) {
	c.Helper()
	wrs := make([]iwarp.SendWR, calls)
	for i := range wrs {
		h := c.header()
		h.Proc, h.Reads = wire.NoMsg, r.reads(0)
		wrs[i] = c.puts(h.Append(nil))
	}
	go func() { _ = c.qp.PostSend(wrs...) }()
}

// TestRPR_15_ReadsThatOthersWaitFor: Reads without an answer for ten seconds end their connections, also if others begin to wait later.
func TestRPR_15_ReadsThatOthersWaitFor(t *testing.T) {
	for _, after := range []time.Duration{0, shortPatience * 3 / 2} {
		bubble(t, func(t *testing.T) {
			m := newMany(t, fewCalls)
			honest := m.connect()
			var bad []*client
			for range 4 {
				c := m.connect()
				r, _ := c.stuck(m.cfg.MaxCall)
				c.asks(r)
				bad = append(bad, c)
			}
			synctest.Wait()
			time.Sleep(after)
			began := time.Now()
			honest.asks(honest.exposes(m.cfg.MaxCall, false))
			honest.next()
			require.InDelta(t, (shortPatience - after/3).Seconds(), time.Since(began).Seconds(), 3)
			for _, c := range bad {
				<-c.conn.Done()
				require.ErrorIs(t, c.conn.Err(), errTimeout)
			}
		})
	}
}

// TestRPR_15_RepliesThatOthersWaitFor: likewise replies that are not taken, ten seconds after the last one that was.
func TestRPR_15_RepliesThatOthersWaitFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMany(t, Config{MaxBytes: 16 << 20})
		long := make([]byte, 1<<20-wire.CallLen)
		call := func(c *client) *Call {
			h := c.header()
			h.Reply, h.HasReply = c.exposes(1<<20, false).chunk(), true
			c.send(h.Append(nil), rpc(h.XID, 17))
			return c.next()
		}
		honest, short := m.connect(), m.connect(noReceives)
		for range m.shared.cfg.Credits {
			k := short.call()
			short.reply(k, accepted(k.rpc.XID), make([]byte, 4000))
		}
		for range 4 {
			c := m.connect(noReceives)
			for _, k := range []*Call{call(c), call(c), call(c)} { // it reads the first, and two are its share
				c.reply(k, accepted(k.rpc.XID), long)
			}
		}
		synctest.Wait()
		began := time.Now()
		k := call(honest)
		honest.reply(k, accepted(k.rpc.XID), long)
		require.InDelta(t, 2*shortPatience.Seconds(), time.Since(began).Seconds(), 3)
		require.NoError(t, short.conn.Err(), "it has none of the memory")
		<-short.conn.Done()
		require.ErrorIs(t, short.conn.Err(), errTimeout)
	})
}

// A slow is memory of a client that takes its time for each RDMA Read.
type slow struct{ stuck }

func (s *slow) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 {
		time.Sleep(shortPatience * 2 / 3)
		copy(p, rpc(0x77, 7))
	}
	return len(p), nil
}

// TestRPR_15_SlowClientsAreWaitedFor while they make progress.
func TestRPR_15_SlowClientsAreWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cfg := fewCalls
		cfg.QP.ORD = 1 // the client answers the Reads one by one
		m := newMany(t, cfg)
		last := m.connect()
		var clients []*client
		for range 4 {
			c := m.connect()
			part := m.cfg.MaxCall / 4
			mr, err := c.pd.RegisterBuffer(&slow{stuck{size: int64(part)}}, stag.LocalWrite|stag.RemoteRead, &iwarp.MROptions{BaseTO: regionTO})
			require.NoError(t, err)
			r := &region{mr: mr, mem: make([]byte, part)}
			c.post((&wire.Header{XID: 0x77, Proc: wire.NoMsg, Reads: slices.Concat(r.reads(0), r.reads(0), r.reads(0), r.reads(0))}).Append(nil))
			clients = append(clients, c)
		}
		synctest.Wait()
		began := time.Now()
		last.asks(last.exposes(m.cfg.MaxCall, false))
		for _, c := range clients {
			c.reply(c.next(), accepted(0x77))
		}
		require.Greater(t, time.Since(began), 2*shortPatience, "long enough for those without progress")
		last.next()
	})
}

// TestRPR_15_WhatWaitsForOneself: a connection that makes no other one wait has a minute.
func TestRPR_15_WhatWaitsForOneself(t *testing.T) {
	for _, others := range []string{"wait for their own share", "have the rest of the memory"} {
		bubble(t, func(t *testing.T) {
			cfg := fewCalls
			cfg.MaxBytes *= 2 // eight calls, and two of a connection
			m := newMany(t, cfg)
			for range 7 {
				c := m.connect()
				c.asks(c.exposes(cfg.MaxCall, false))
				c.next()
				if others == "wait for their own share" {
					c.asks(c.exposes(cfg.MaxCall, false))
					c.next()
					c.asks(c.exposes(cfg.MaxCall, false))
					break
				}
			}
			began := time.Now()
			c := m.connect()
			r, _ := c.stuck(cfg.MaxCall)
			c.asksOfStuck(r, 3)
			<-c.conn.Done()
			require.ErrorIs(t, c.conn.Err(), errTimeout)
			require.InDelta(t, patience.Seconds(), time.Since(began).Seconds(), 3, others)
		})
	}
}

func (p *pool) inUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used + p.kept
}

// accounts are the accounts that wait for memory.
func (p *pool) accounts() map[*account]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[*account]bool)
	for w := p.waits.next; w != &p.waits; w = w.next {
		all[w.acc] = true
	}
	return all
}

// takes notes the order of grants.
type takes struct {
	name  string
	order *[]string
	got   *[]*memory
}

func (t *takes) granted(m *memory, err error) {
	if err == nil {
		*t.order = append(*t.order, t.name)
		*t.got = append(*t.got, m)
	}
}

// TestRPR_14_FirstComeFirstServed: but an account that has its share lets others pass.
func TestRPR_14_FirstComeFirstServed(t *testing.T) {
	rnic := open(t)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	const unit = 64 << 10
	p := newPool(4*unit, 2*unit, stag.LocalWrite)
	owner := &home{pd: pd}
	owner.uses.Add(1)
	a, b, c := &account{p: p, home: owner}, &account{p: p, home: owner}, &account{p: p, home: owner}
	var order []string
	var got []*memory
	ask := func(name string, acc *account, n int) *waiter {
		w := new(waiter)
		acc.ask(w, n, &takes{name, &order, &got})
		return w
	}
	ask("a1", a, unit)
	ask("a2", a, unit)
	ask("a3", a, unit) // beyond its share
	ask("b1", b, unit)
	ask("c2", c, 2*unit) // does not fit
	ask("b2", b, unit)   // would fit, but came later
	gone := ask("c3", c, unit)
	require.Equal(t, []string{"a1", "a2", "b1"}, order)
	require.True(t, p.cancel(gone))
	require.False(t, p.cancel(gone))
	back := func(i int) {
		p.put(got[i])
		p.deliver()
	}
	back(0)
	require.Equal(t, []string{"a1", "a2", "b1", "a3"}, order, "first of those that wait")
	back(1)
	require.Equal(t, []string{"a1", "a2", "b1", "a3", "c2"}, order)
	back(2)
	require.Equal(t, []string{"a1", "a2", "b1", "a3", "c2", "b2"}, order)
	back(3)
	back(4)
	back(5)
	require.Zero(t, p.used)
	require.LessOrEqual(t, p.kept, p.limit, "what is kept counts")
	for _, acc := range []*account{a, b, c} {
		acc.close()
	}
	require.Zero(t, p.kept)
	owner.leave()
	require.Zero(t, owner.uses.Load())
}

// TestRPR_14_Sizes: a piece is at most an eighth longer than requested, and there are few sizes.
func TestRPR_14_Sizes(t *testing.T) {
	sizes := make(map[int]bool)
	for n := 1; n < 3<<20; n += 999 {
		size := sizeOf(n)
		require.GreaterOrEqual(t, size, n)
		require.LessOrEqual(t, size, max(leastMemory, n+n/8+1))
		require.Equal(t, size, sizeOf(size))
		sizes[size] = true
	}
	require.Less(t, len(sizes), 80)
	for limit := 16 << 20; limit < 64<<20; limit += 99991 {
		c := Config{MaxBytes: limit}
		share := limit / maxShare
		require.LessOrEqual(t, sizeOf(c.maxReply()), share, "the longest reply gets its memory")
		require.Greater(t, c.maxReply(), share-share/8)
	}
}

// TestRPR_14_KeptMemory is reused, and given to others when they need it.
func TestRPR_14_KeptMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMany(t, Config{MaxBytes: 16 << 20})
		write := func(c *client) *memory {
			r := c.exposes(1<<20, true)
			h := c.header()
			copy(r.mem, rpc(h.XID, 7))
			h.Proc, h.Reads = wire.NoMsg, r.reads(0)
			c.send(h.Append(nil))
			k := c.next()
			mem := k.mem
			c.reply(k, accepted(h.XID))
			c.recv()
			synctest.Wait()
			return mem
		}
		c := m.connect()
		first := write(c)
		require.Same(t, first, write(c))
		for range 20 {
			write(m.connect())
			require.LessOrEqual(t, m.shared.calls.inUse(), 8<<20)
		}
		require.NotSame(t, first, write(c), "the oldest had to go")
	})
}

// TestRPR_15_AServerThatIsSlow: a call whose RDMA Reads have come may take its server longer than patience.
func TestRPR_15_AServerThatIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := connected(t, Config{})
		r := c.exposes(10000, true)
		h := c.header()
		h.Proc, h.Reads = wire.NoMsg, r.reads(0)
		copy(r.mem, rpc(h.XID, 17))
		h.Reply, h.HasReply = r.chunk(), true
		c.send(h.Append(nil))
		k := c.next()
		time.Sleep(2 * patience)
		require.NoError(t, c.conn.Err())
		c.reply(k, accepted(h.XID), make([]byte, 5000))
		c.recv()
	})
}

// TestRPR_14_MemoryThatComesWithTheEnd of a connection, for a reply that waits for it, is returned. If the connection has released
// everything already, none comes.
func TestRPR_14_MemoryThatComesWithTheEnd(t *testing.T) {
	for _, released := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			m := newMany(t, Config{MaxBytes: 16 << 20})
			c, p := m.connect().conn, m.shared.replies
			var got []*memory
			for range p.limit / p.share {
				(&account{p: p, home: c.home}).ask(new(waiter), p.share, &takes{"", new([]string), &got})
			}
			began := make(chan error, 1)
			go func() {
				_, err := c.begin(nil, p.share)
				began <- err
			}()
			synctest.Wait()
			c.mu.Lock()
			c.reach(closing) // begin needs the mutex for the reason
			if released {
				c.replyMemory.close()
			}
			for _, piece := range got {
				p.put(piece)
			}
			p.deliver()
			require.Equal(t, released, p.used == 0)
			c.mu.Unlock()
			require.ErrorIs(t, <-began, net.ErrClosed)
			synctest.Wait()
			require.Zero(t, p.used)
			for _, piece := range got {
				piece.acc.close()
			}
		})
	}
}

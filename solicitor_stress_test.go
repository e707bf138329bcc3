package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A readers is many QPs that read from one memory, under one Solicitor.
type readers struct {
	*testing.T
	s      *iwarp.Solicitor
	client *side
	qps    []*iwarp.QP
	peers  []*iwarp.QP
	memory []byte
	at     *iwarp.MR
	reads  atomic.Int64 // that succeeded
	lost   atomic.Int64 // that failed because their QP has ended
	late   atomic.Int64 // that got no window in time
}

const readersMemory = 1 << 16

func newReaders(t *testing.T, network string, qps int, cfg solicit.Config) *readers {
	x := &readers{T: t, s: newSolicitor(t, cfg)}
	var server *side
	for range qps {
		pc := pairConfig{network: network, client: iwarp.QPConfig{Solicitor: x.s, ORD: 4}}
		if server == nil {
			x.client, server = connect(t, pc)
		} else {
			x.client.connect(server, pc)
		}
		x.qps, x.peers = append(x.qps, x.client.qp), append(x.peers, server.qp)
	}
	x.memory, x.at = server.register(readersMemory, stag.RemoteRead, nil)
	fillRandom(x.memory)
	return x
}

// posts reads parts of the memory through one QP, and compares them.
func (x *readers) posts(ctx context.Context, qp *iwarp.QP, rounds int, most int) {
	b := make([]byte, most)
	mr, err := x.client.pd.RegisterMR(b, stag.LocalWrite, nil)
	if !fine(x.T, err) {
		return
	}
	for range rounds {
		n := 1 + rand.IntN(most)
		off := rand.IntN(readersMemory - n + 1)
		wr := iwarp.SendWR{Op: iwarp.OpRDMARead, Class: solicit.Class(rand.IntN(2)), Local: []iwarp.SGE{mr.Slice(0, n)}, Remote: x.at.Advertise(off, n)}
		if rand.IntN(4) == 0 {
			wr.Flags = iwarp.ReadFence
		}
		wc, err := doOne(ctx, qp, wr)
		switch {
		case err == nil && bytes.Equal(x.memory[off:off+n], b[:n]):
			x.reads.Add(1)
		case wc.Status == iwarp.StatusTimeout:
			x.late.Add(1)
		case errors.Is(err, net.ErrClosed):
			x.lost.Add(1)
			return
		default:
			x.Errorf("%d octets at %d: %v", n, off, err)
			return
		}
	}
	fine(x.T, mr.Close())
}

// TestSOL_22_ManyQPs: 64 QPs with four posters each. Some of the QPs end meanwhile, in each way.
func TestSOL_22_ManyQPs(t *testing.T) {
	const qps, posters, window, most = 64, 4, 32 << 10, 12 << 10
	rounds := 30
	if testing.Short() || raceorder.Enabled {
		rounds = 10
	}
	for what, c := range map[string]struct {
		network string
		cfg     solicit.Config
	}{
		"TCP":             {"tcp", solicit.Config{Fixed: window}},
		"pipe":            {"pipe", solicit.Config{Fixed: window, Strict: true}},
		"with timeouts":   {"pipe", solicit.Config{Fixed: window, Dispatch: [2]time.Duration{100 * time.Microsecond, 100 * time.Microsecond}}},
		"automatic sizes": {"tcp", solicit.Config{Min: window, Start: window, Max: 2 * window}},
	} {
		t.Run(what, func(t *testing.T) {
			x := newReaders(t, c.network, qps, c.cfg)
			ctx := testContext(t)
			var all sync.WaitGroup
			for i, qp := range x.qps {
				for range posters {
					all.Go(func() { x.posts(ctx, qp, rounds, most) })
				}
				ends := []func() error{qp.Abort, qp.Terminate, x.peers[i].Abort, x.peers[i].Terminate}
				if i%8 == 0 {
					all.Go(func() {
						time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
						_ = ends[i/8%len(ends)]()
					})
				}
			}
			all.Wait()
			stats := x.s.Stats()
			t.Logf("%d Reads, %d lost, %d late; %+v", x.reads.Load(), x.lost.Load(), x.late.Load(), stats)
			require.GreaterOrEqual(t, x.reads.Load()+x.late.Load(), int64(qps*7/8*posters*rounds), "the QPs that go on have read all")
			require.Equal(t, c.cfg.Dispatch[0] != 0, x.late.Load() > 0)
			require.Greater(t, stats.MaxGranted, int64(window/2))
			var waits uint64
			for _, qp := range x.qps {
				waits += qp.Stats().ReadWaits
			}
			require.NotZero(t, waits)
		})
	}
}

// TestSOL_22_TwoQPsInTurn: each completion of one QP lets the other one start.
func TestSOL_22_TwoQPsInTurn(t *testing.T) {
	x := newReaders(t, "tcp", 2, solicit.Config{Fixed: 64})
	var all sync.WaitGroup
	for _, qp := range x.qps {
		all.Go(func() { x.posts(testContext(t), qp, 2000, 64) })
	}
	all.Wait()
	require.EqualValues(t, 4000, x.reads.Load())
	require.EqualValues(t, 64, x.s.Stats().MaxGranted)
}

// TestSOL_18_RemoteMemorySplits: it reads in pieces that fit.
func TestSOL_18_RemoteMemorySplits(t *testing.T) {
	const n = 9<<20 + 3
	for _, c := range []struct {
		window       int64
		length, want int
	}{
		{1 << 20, n, 145},
		{1 << 20, 64 << 10, 1},
		{1 << 20, 64<<10 + 1, 2},
		{1000, 10_000, 10},
		{0, n, 1}, // without a Solicitor
	} {
		var s *iwarp.Solicitor
		if c.window != 0 {
			s = newSolicitor(t, solicit.Config{Fixed: c.window})
		}
		client, server := connect(t, pairConfig{client: iwarp.QPConfig{Solicitor: s}})
		mem, mr := server.register(7+n, stag.RemoteRead, nil)
		fillRandom(mem)
		p := make([]byte, c.length)
		got, err := client.qp.Remote(mr.Advertise(7, n)).ReadAt(p, 0)
		require.NoError(t, err)
		require.Equal(t, c.length, got)
		require.True(t, bytes.Equal(mem[7:][:c.length], p))
		require.EqualValues(t, c.want, client.qp.Stats().Sent.ReadRequest.Messages, "%+v", c)
		if s != nil {
			require.LessOrEqual(t, s.Stats().MaxGranted, c.window)
		}
		require.Zero(t, client.rnic.InUse().MaxMR)
	}
}

// TestSOL_16_NothingIsAllocated: neither for a Read that waits, nor for one that does not.
func TestSOL_16_NothingIsAllocated(t *testing.T) {
	const n = 4 << 10
	for reads, wait := range map[int]bool{2: false, 3: true} {
		s := newSolicitor(t, solicit.Config{Fixed: 2 * n})
		client, server := connect(t, pairConfig{client: iwarp.QPConfig{Solicitor: s}})
		_, cm := client.register(n, stag.LocalWrite, nil)
		_, sm := server.register(n, stag.RemoteRead, nil)
		wrs, wcs := make([]iwarp.SendWR, reads), make([]iwarp.WC, 1)
		for i := range wrs {
			wrs[i] = iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{cm.Slice(0, n)}, Remote: sm.Advertise(0, n)}
		}
		wantNoAllocs(t, "a Read that may wait", func() {
			if err := client.qp.PostSend(wrs...); err != nil {
				t.Fatal(err)
			}
			for range wrs {
				one(t, client.qp.SendCQ(), wcs)
			}
		})
		require.Equal(t, wait, client.qp.Stats().ReadWaits > 0)
	}
}

func TestSOL_20_RemoteMemoryFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, ks := talks(t, 2, solicit.Config{Fixed: 4096, Dispatch: [2]time.Duration{time.Second, 0}})
		ks[0].posts(ks[0].read(1, 4096))
		ks[0].asks("the window is used up", 1, 4096)
		m := ks[1].qp.Remote(iwarp.RemoteBuffer{STag: 1, Len: 10_000})
		n, err := m.ReadAt(make([]byte, 10_000), 0)
		require.Zero(t, n)
		require.ErrorIs(t, err, iwarp.ErrDispatchTimeout)
		require.NotErrorIs(t, err, net.ErrClosed)
		require.NotErrorAs(t, err, new(*iwarp.ListError), "the caller has posted no list")
		require.EqualValues(t, 3, s.Stats().Expired, "each piece for itself")
		require.EqualValues(t, 1, ks[1].rnic.InUse().MaxMR, "nothing stays registered")
		for _, k := range ks {
			require.NoError(t, k.qp.Abort())
		}
	})
}

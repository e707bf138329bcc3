package rma

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRMA_19_ManyClientsLoseTheirConnections: at any point, while keys rotate. Each operation ends once,
// in bounded time, and the reported outcome of each write is true.
func TestRMA_19_ManyClientsLoseTheirConnections(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				bubble(t, func(t *testing.T) { loses(t, p, rand.New(rand.NewPCG(seed, 1))) })
			}
		})
	}
}

// A cell is what one worker knows about its part of the region: the last write that it knows to be
// done, and the later writes whose outcome it does not know.
type cell struct {
	done  byte
	maybe map[byte]bool
}

func loses(t *testing.T, p plan, r *rand.Rand) {
	p.server.Solicitor = fixed(t, 20000)
	w := newPair(t, p)
	w.serve()
	var err error
	w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
	require.NoError(t, err)
	h := w.opens()
	victim := w.qps[r.IntN(2)]
	end := time.Duration(r.IntN(50)) * time.Millisecond
	var all sync.WaitGroup
	all.Go(func() {
		time.Sleep(end)
		require.NoError(t, victim.Abort())
	})
	all.Go(func() {
		for range 5 {
			time.Sleep(10 * time.Millisecond)
			_, _ = w.region.Rekey(t.Context(), nil, 0)
		}
	})
	cells := make([]cell, 8)
	for i := range cells {
		portal := w.portal(4)
		seed := r.Uint64()
		all.Go(func() { cells[i] = writes(t, h, portal, i, rand.New(rand.NewPCG(seed, 2))) })
	}
	all.Wait()
	require.NoError(t, w.client.Close())
	if err := <-w.served; err != nil {
		require.ErrorIs(t, err, net.ErrClosed)
	}
	var before []byte
	w.mem.View(func(b []byte) { before = append(before, b[:8*4096]...) })
	for i, c := range cells {
		got := before[i*4096]
		require.True(t, got == c.done || c.maybe[got], "cell %d has %d, where %d was done, and %v may be", i, got, c.done, c.maybe)
		for _, b := range before[i*4096 : (i+1)*4096] {
			require.Equal(t, got, b, "an operation is done as a whole")
		}
	}
	time.Sleep(time.Minute)
	w.mem.View(func(b []byte) { require.Equal(t, before, b[:8*4096], "nothing happens later") })
	w.wantNothingLeft()
	require.NoError(t, w.plan.client.PD.Close())
}

// writes writes to its part of the region until the connection is gone.
func writes(t *testing.T, h *Handle, p *Portal, i int, r *rand.Rand) cell {
	c := cell{maybe: map[byte]bool{}}
	for n := byte(1); ; n++ {
		buf := bytes.Repeat([]byte{n}, 4096)
		begun := time.Now()
		if _, err := p.Post(Command{Op: Write, Handle: h, Off: uint64(i) * 4096, Buf: buf}); errors.Is(err, net.ErrClosed) {
			return c
		}
		end := p.ended(t)
		require.Less(t, time.Since(begun), 3*time.Second)
		var e *OpError
		switch {
		case end.Err == nil:
			c = cell{done: n, maybe: map[byte]bool{}}
		case !errors.As(end.Err, &e):
			t.Error(end.Err)
		case !e.Outcome.NoEffect():
			c.maybe[n] = true
		}
		if errors.Is(end.Err, net.ErrClosed) {
			return c
		}
		if errors.Is(end.Err, ErrRemoteAuth) {
			_ = h.Reopen(t.Context())
		}
		time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
	}
}

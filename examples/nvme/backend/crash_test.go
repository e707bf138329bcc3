package backend

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A history is what a host knows of its blocks. Version 0 is zeros.
type history struct {
	mu      sync.Mutex
	written []uint64 // the latest version whose write has begun, by block
	done    []uint64 // the latest version whose write has completed
	durable []uint64 // the latest version that must survive
}

func versionOf(p []byte) (uint64, error) {
	v := binary.LittleEndian.Uint64(p)
	for i := 8; i < len(p); i += 8 {
		if w := binary.LittleEndian.Uint64(p[i:]); w != v {
			return 0, fmt.Errorf("a torn block of versions %d and %d", v, w)
		}
	}
	return v, nil
}

// work is one writer of the blocks from first to first+n, which also flushes, until the power fails.
func (h *history) work(f *Fake, r *rand.Rand, first, n int) {
	p := make([]byte, f.BlockSize())
	for {
		if r.IntN(8) == 0 {
			h.mu.Lock()
			done := append([]uint64(nil), h.done...)
			h.mu.Unlock()
			if f.Flush(ctx) != nil {
				return
			}
			h.mu.Lock()
			for i := range done {
				h.durable[i] = max(h.durable[i], done[i])
			}
			h.mu.Unlock()
			continue
		}
		i, fua := first+r.IntN(n), r.IntN(6) == 0
		h.mu.Lock()
		h.written[i]++
		v := h.written[i]
		h.mu.Unlock()
		for k := 0; k < len(p); k += 8 {
			binary.LittleEndian.PutUint64(p[k:], v)
		}
		if f.WriteAt(ctx, p, int64(i)*int64(len(p)), fua) != nil {
			return
		}
		h.mu.Lock()
		h.done[i] = v
		if fua {
			h.durable[i] = v
		}
		h.mu.Unlock()
	}
}

// judge checks the contents after the power cut.
func (h *history) judge(f *Fake) error {
	p := make([]byte, f.BlockSize())
	for i := range h.durable {
		if err := f.ReadAt(ctx, p, int64(i)*int64(len(p))); err != nil {
			return err
		}
		v, err := versionOf(p)
		if err != nil {
			return err
		}
		if v < h.durable[i] || v > h.written[i] {
			return fmt.Errorf("block %d has version %d; %d is durable and %d the latest", i, v, h.durable[i], h.written[i])
		}
	}
	return nil
}

// powerCut runs four writers, cuts the power at a random moment, and returns what is wrong then.
func powerCut(t *testing.T, c FakeConfig, seed uint64, torn bool) (wrong error) {
	const writers, each = 4, 6
	c.Size = writers * each * 4096
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, c)
		f.Inject(Fault{Call: CallWrite, Delay: time.Millisecond})
		f.Inject(Fault{Call: CallWriteD, Delay: 3 * time.Millisecond})
		f.Inject(Fault{Call: CallSync, Delay: 5 * time.Millisecond})
		n := writers * each
		h := &history{written: make([]uint64, n), done: make([]uint64, n), durable: make([]uint64, n)}
		var all sync.WaitGroup
		for w := range writers {
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			all.Go(func() { h.work(f, r, w*each, each) })
		}
		time.Sleep(time.Duration(20+seed%50) * time.Millisecond)
		after, err := f.Crash(seed, torn)
		require.NoError(t, err)
		all.Wait()
		wrong = h.judge(after)
	})
	return wrong
}

func TestNVME_64_WhatWasFlushedSurvivesAPowerCut(t *testing.T) {
	for seed := range uint64(40) {
		require.NoError(t, powerCut(t, FakeConfig{}, seed, false), "seed %d", seed)
		require.NoError(t, powerCut(t, FakeConfig{Plain: true}, seed, false), "seed %d", seed)
	}
}

// TestNVME_64_ForgetfulSyncsAreFound: the test above notices syncs without effect.
func TestNVME_64_ForgetfulSyncsAreFound(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		if powerCut(t, FakeConfig{Forgetful: true}, seed, false) != nil {
			found++
		}
	}
	require.Greater(t, found, 10)
}

func TestFakeCrashChoosesVersions(t *testing.T) {
	seen := make(map[byte]int)
	torn := 0
	for seed := range uint64(200) {
		f := newTestFake(t, FakeConfig{Size: 8192})
		require.NoError(t, f.WriteAt(ctx, bytes.Repeat([]byte{1}, 4096), 0, false))
		require.NoError(t, f.Flush(ctx))
		require.NoError(t, f.WriteAt(ctx, bytes.Repeat([]byte{2}, 4096), 0, false))
		require.NoError(t, f.WriteAt(ctx, bytes.Repeat([]byte{3}, 4096), 0, false))
		requireEqual(t, bytes.Repeat([]byte{3}, 4096), mustRead(t, f, 0, 4096), "the latest, before")
		after, err := f.Crash(seed, seed >= 100)
		require.NoError(t, err)
		p := mustRead(t, after, 0, 4096)
		if whole(p) != nil {
			require.GreaterOrEqual(t, seed, uint64(100), "no torn block unless told")
			torn++
			continue
		}
		seen[p[0]]++
		require.ErrorIs(t, f.ReadAt(ctx, p, 0), ErrClosed, "the old one has no power")
		require.ErrorIs(t, f.Flush(ctx), ErrClosed)
	}
	require.Len(t, seen, 3, "one of the versions, or what was flushed: %v", seen)
	require.Greater(t, torn, 10)
}

func TestFakeCrashIsThatOfTheSeed(t *testing.T) {
	image := func(seed uint64) []byte {
		f := newTestFake(t, FakeConfig{Size: 1 << 20})
		require.NoError(t, f.WriteAt(ctx, fill(1<<20, 1), 0, false))
		after, err := f.Crash(seed, true)
		require.NoError(t, err)
		return mustRead(t, after, 0, 1<<20)
	}
	require.Equal(t, image(1), image(1))
	require.NotEqual(t, image(1), image(2))
}

func TestFakeFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{})
		f.Inject(Fault{Call: CallRead, Off: 4096, Len: 4096, Skip: 1, Times: 1, Err: syscall.EIO})
		p := make([]byte, 4096)
		require.NoError(t, f.ReadAt(ctx, p, 0), "another range")
		require.NoError(t, f.ReadAt(ctx, p, 4096), "skipped")
		err := f.ReadAt(ctx, p, 4096)
		require.ErrorIs(t, err, ErrRead)
		require.ErrorIs(t, err, syscall.EIO)
		require.EqualError(t, err, "backend: read of 4096 octets at 4096: read error: input/output error")
		require.NoError(t, f.ReadAt(ctx, p, 4096), "only once")

		gate := make(chan struct{})
		f.Inject(Fault{Wait: gate, Delay: time.Second})
		start := time.Now()
		go func() { time.Sleep(time.Second); close(gate) }()
		require.NoError(t, f.WriteAt(ctx, p, 0, false))
		require.Equal(t, 2*time.Second, time.Since(start))
		f.Heal()
		start = time.Now()
		require.NoError(t, f.WriteAt(ctx, p, 0, false))
		require.Zero(t, time.Since(start))
	})
}

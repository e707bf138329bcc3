package kv

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rma"
)

func (w *world) pipeline(tenant string, plain bool) *Pipeline {
	w.Helper()
	key, err := TenantKey(testMaster, tenant)
	require.NoError(w, err)
	p, err := OpenPipeline(w.context(), &PipelineConfig{Network: w.network, Addr: w.addrs[1], Tenant: tenant, Key: key, Window: 8, Plain: plain})
	require.NoError(w, err)
	return p
}

// TestPipelines: they find present and absent keys, with more Gets than may be outstanding at a time.
func TestPipelines(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%t", plain), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, "pipe")
				w.start()
				c := w.client("alpha")
				const keys = 40
				for i := range keys {
					w.put(c, keyOf(i), strings.Repeat(fmt.Sprint(i), i))
				}
				p := w.pipeline("alpha", plain)
				seen := make(map[int]int)
				key := func(i int) []byte { return []byte(keyOf(i % (2 * keys))) }
				err := p.Gets(w.context(), 300, key, func(i int, v Verdict, value []byte) {
					k := i % (2 * keys)
					if k < keys {
						require.Equal(t, Found, v)
						require.Equal(t, strings.Repeat(fmt.Sprint(k), k), string(value))
					} else {
						require.Equal(t, Absent, v)
					}
					seen[i]++
				})
				require.NoError(t, err)
				require.Len(t, seen, 300)
				require.NoError(t, p.Gets(w.context(), 0, key, nil))
				require.NoError(t, p.Close())
			})
		})
	}
}

// TestPipelineWhoseKeysAreReplaced: without a grace period, and in the midst of its Gets, which go on with the new keys.
func TestPipelineWhoseKeysAreReplaced(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		const keys = 10
		for i := range keys {
			w.put(c, keyOf(i), fmt.Sprint(i))
		}
		p := w.pipeline("alpha", false)
		for range 3 {
			got := 0
			key := func(i int) []byte { return []byte(keyOf(i % keys)) }
			err := p.Gets(w.context(), 100, key, func(i int, v Verdict, value []byte) {
				require.Equal(t, Found, v)
				require.Equal(t, fmt.Sprint(i%keys), string(value))
				if got++; got%10 == 0 {
					_, err := w.backup.Rekey(w.context(), "alpha", 0)
					require.NoError(t, err)
				}
			})
			require.NoError(t, err)
			require.Equal(t, 100, got)
		}
		// Where there are no keys any more, Gets fail.
		require.NoError(t, w.backup.regions[c.region].Close())
		delete(w.backup.regions, c.region)
		err := p.Gets(w.context(), 1, func(int) []byte { return []byte("a") }, func(int, Verdict, []byte) {})
		require.ErrorIs(t, err, rma.ErrRemoteAuth)
		require.NoError(t, p.Close())
	})
}

// TestPipelineAlwaysTooLate: a read whose key is always outdated is given up.
func TestPipelineAlwaysTooLate(t *testing.T) {
	r := &sealedReads{mem: make([]byte, 2*maxStored), reads: make([]sealedRead, 2)}
	require.NoError(t, r.read(1, 0, 0))
	for range maxStale {
		again, err := r.again(1, &rma.OpError{Outcome: rma.RemoteAuth, Reason: rma.StaleEpoch})
		require.NoError(t, err)
		require.True(t, again)
	}
	_, err := r.again(1, &rma.OpError{Outcome: rma.RemoteAuth, Reason: rma.StaleEpoch})
	require.ErrorIs(t, err, rma.ErrRemoteAuth)
	again, err := r.again(1, nil)
	require.NoError(t, err)
	require.False(t, again)
}

// TestPipelineThatHasFailed: it does not take the reads of one Get for those of another.
func TestPipelineThatHasFailed(t *testing.T) {
	for _, plain := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, "pipe")
			w.start()
			w.put(w.client("alpha"), "a", "1")
			p := w.pipeline("alpha", plain)
			ctx, cancel := context.WithCancel(w.context())
			cancel()
			other := func(int) []byte { return []byte("something else") }
			err := p.Gets(ctx, 1, other, func(int, Verdict, []byte) {})
			synctest.Wait()
			if err != nil { // Gets that need not wait succeed even then
				err = p.Gets(w.context(), 1, func(int) []byte { return []byte("a") }, func(_ int, v Verdict, value []byte) {
					require.Equal(t, Found, v)
				})
				require.ErrorIs(t, err, context.Canceled)
			}
			require.NoError(t, p.Close())
		})
	}
}

// TestNothingIsTorn: over TCP, values longer than a segment change as fast as they can. Each Get sees a complete value.
// With keys, reads exclude changes. Without keys, a value has a checksum and a version.
func TestNothingIsTorn(t *testing.T) {
	w := newWorld(t, "tcp")
	w.start()
	c := w.customClient("alpha", 20*time.Second, 0)
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 30_000+i%64) }
	const keys = 2
	for k := range keys {
		require.NoError(t, c.Put(w.context(), []byte(keyOf(k)), value(0)))
	}
	var over atomic.Bool
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer over.Store(true)
		for i := range 100 {
			if err := c.Put(w.context(), []byte(keyOf(i%keys)), value(i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	whole := func(b []byte) bool {
		return len(b) > 0 && len(b) == 30_000+int(b[0])%64 && bytes.Count(b, b[:1]) == len(b)
	}
	tasks.Go(func() {
		for i := 0; !over.Load(); i++ {
			if b, err := c.Get(w.context(), []byte(keyOf(i%keys))); err != nil || !whole(b) {
				t.Errorf("a Get: %d octets, %v", len(b), err)
				return
			}
		}
	})
	for _, plain := range []bool{false, true} {
		p := w.pipeline("alpha", plain)
		tasks.Go(func() {
			for !over.Load() {
				err := p.Gets(w.context(), 100, func(i int) []byte { return []byte(keyOf(i % keys)) }, func(_ int, v Verdict, b []byte) {
					if v != Found || !whole(b) {
						t.Errorf("plain %t: verdict %d, %d octets", plain, v, len(b))
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	tasks.Wait()
}

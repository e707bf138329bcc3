package cm

import (
	"context"
	"iter"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// descriptors returns the number of open descriptors.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all) - 1 // without the one that reads the directory
}

// waitsForDescriptors waits until there are no more than n.
func waitsForDescriptors(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return descriptors(t) <= n }, 30*time.Second, 5*time.Millisecond, "a descriptor is left")
}

// tenthDead yields h a thousand times, but makes each tenth target dead.
func tenthDead(h *host) iter.Seq[Target] {
	return func(yield func(Target) bool) {
		for i := range 1000 {
			target := localTCP(h)
			if i%10 == 0 {
				target.Addr = "127.0.0.1:1"
			}
			if !yield(target) {
				return
			}
		}
	}
}

// TestCM_48_TenPercentOfAThousandAreDead, over real sockets.
func TestCM_48_TenPercentOfAThousandAreDead(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEnd(t, iwarp.Limits{})
	before := descriptors(t)
	_, all := collect(t, DialMany(t.Context(), tenthDead(h), &Options{RNIC: client.rnic, QP: client.config()}))
	require.Len(t, all, 1000)
	require.Equal(t, 100, countFailed(all))
	client.waitsUntilIdle()
	waitsForDescriptors(t, before)
}

// TestCM_49_NoDescriptorIsLeft: after a loop that was left, or whose context has ended.
func TestCM_49_NoDescriptorIsLeft(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 20*time.Millisecond)
	client := newEnd(t, iwarp.Limits{})
	var pulled gauge
	run := func(end func(n int) bool, ctx context.Context) {
		n := 0
		for _, r := range DialMany(ctx, endless(localTCP(h), &pulled), &Options{RNIC: client.rnic, QP: client.config()}) {
			if r.QP != nil {
				require.NoError(t, r.QP.Abort())
			}
			if n++; end(n) {
				break
			}
		}
	}
	before := descriptors(t)
	run(func(n int) bool { return n == 100 }, t.Context())
	waitsForDescriptors(t, before)
	ctx, cancel := context.WithCancel(t.Context())
	run(func(n int) bool {
		if n == 100 {
			cancel()
		}
		return false
	}, ctx)
	waitsForDescriptors(t, before)
	client.waitsUntilIdle()
}

// TestCM_53_DisconnectManyOverTCP: it frees every descriptor.
func TestCM_53_DisconnectManyOverTCP(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEndWith(t, &iwarp.Config{CloseTimeout: time.Minute})
	before := descriptors(t)
	var qps []*iwarp.QP
	targets := func(yield func(Target) bool) {
		for range 200 {
			if !yield(localTCP(h)) {
				return
			}
		}
	}
	for _, r := range DialMany(t.Context(), targets, &Options{RNIC: client.rnic, QP: client.config()}) {
		require.NoError(t, r.Err)
		qps = append(qps, r.QP)
	}
	require.NoError(t, qps[7].Abort())
	for _, err := range DisconnectMany(t.Context(), slices.Values(qps), &DisconnectOptions{Timeout: time.Minute}) {
		require.NoError(t, err)
	}
	client.waitsUntilIdle()
	h.closes()
	waitsForDescriptors(t, before)
}

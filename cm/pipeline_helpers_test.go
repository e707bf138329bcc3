package cm

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// An end is an RNIC with a PD.
type end struct {
	*testing.T
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func newEnd(t *testing.T, limits iwarp.Limits) *end {
	t.Helper()
	return newEndWith(t, &iwarp.Config{Limits: limits, CloseTimeout: time.Second})
}

func newEndWith(t *testing.T, cfg *iwarp.Config) *end {
	t.Helper()
	rnic, err := iwarp.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rnic.Close() })
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	return &end{t, rnic, pd}
}

func (e *end) config() *iwarp.QPConfig {
	return &iwarp.QPConfig{PD: e.pd, SendDepth: 4, RecvDepth: 4, MPA: iwarp.MPAOptions{ClientServer: true}}
}

// waitsUntilIdle waits until no QP of the end is left; it creates none after that.
func (e *end) waitsUntilIdle() {
	e.Helper()
	require.Eventually(e, func() bool { return e.pd.Close() == nil }, 30*time.Second, time.Millisecond, "a QP is left")
}

// A host answers the requests of its listener after a delay.
type host struct {
	*end
	addr     string
	accepted atomic.Int64
	mu       sync.Mutex
	delay    time.Duration
	refuse   bool
	qps      []*iwarp.QP
}

// listens makes a host; in a bubble the network is pipe.
func listens(t *testing.T, network, addr string, delay time.Duration) *host {
	t.Helper()
	return listensWith(t, network, addr, delay, nil)
}

func listensWith(t *testing.T, network, addr string, delay time.Duration, lc *iwarp.ListenConfig) *host {
	t.Helper()
	h := &host{end: newEnd(t, iwarp.Limits{}), delay: delay}
	if network == "tcp" && lc == nil { // in real time: a slow machine must not fail the test
		lc = &iwarp.ListenConfig{SetupTimeout: time.Minute, ProgressTimeout: time.Minute}
	}
	l, err := h.rnic.Listen(context.Background(), network, addr, lc)
	require.NoError(t, err)
	h.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			cr, err := l.Accept(ctx)
			if err != nil {
				return
			}
			all.Go(func() { h.answers(ctx, cr) })
		}
	})
	return h
}

func (h *host) answers(ctx context.Context, cr *iwarp.ConnRequest) {
	h.mu.Lock()
	delay, refuse := h.delay, h.refuse
	h.mu.Unlock()
	_ = sleep(ctx, delay)
	if refuse {
		_ = cr.Reject(nil)
		return
	}
	qp, err := cr.Accept(ctx, h.config())
	if err != nil {
		return
	}
	h.accepted.Add(1)
	h.mu.Lock()
	h.qps = append(h.qps, qp)
	h.mu.Unlock()
}

// refuses sets whether the host refuses requests from now on.
func (h *host) refuses(yes bool) {
	h.mu.Lock()
	h.refuse = yes
	h.mu.Unlock()
}

// aborts ends all connections.
func (h *host) aborts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, qp := range h.qps {
		_ = qp.Abort()
	}
	h.qps = nil
}

// pipes makes n targets for each address, in turn.
func pipes(n int, addrs ...string) iter.Seq[Target] {
	return func(yield func(Target) bool) {
		for i := range n * len(addrs) {
			if !yield(Target{Network: "pipe", Addr: addrs[i%len(addrs)], Tag: i}) {
				return
			}
		}
	}
}

// dead makes a listener that answers no request.
func dead(t *testing.T, addr string) string {
	t.Helper()
	e := newEnd(t, iwarp.Limits{})
	l, err := e.rnic.Listen(context.Background(), "pipe", addr, &iwarp.ListenConfig{SetupTimeout: time.Hour, ProgressTimeout: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// collect runs a DialMany to its end, and closes the QPs.
func collect(t *testing.T, results iter.Seq2[Target, Result]) (targets []Target, all []Result) {
	t.Helper()
	for target, r := range results {
		require.Equal(t, r.Err == nil, r.QP != nil, "either a QP or an error")
		var se *SetupError
		if r.Err != nil {
			require.ErrorAs(t, r.Err, &se)
			require.Equal(t, target, se.Target)
			require.Equal(t, r.Stage, se.Stage)
		} else {
			require.Equal(t, StageReady, r.Stage)
			require.NoError(t, r.QP.Abort())
		}
		targets, all = append(targets, target), append(all, r)
	}
	return targets, all
}

// tags returns the numbers of targets.
func tags(targets []Target) []int {
	var n []int
	for _, t := range targets {
		n = append(n, t.Tag.(int))
	}
	return n
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func sorted(n []int) []int {
	slices.Sort(n)
	return n
}

func countFailed(all []Result) (n int) {
	for _, r := range all {
		if r.Err != nil {
			n++
		}
	}
	return n
}

// A gauge tracks the current and the greatest number of something.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
}

var errTest = errors.New("of the test")

func localTCP(h *host) Target { return Target{Network: "tcp", Addr: h.addr} }

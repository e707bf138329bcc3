package cm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport"
)

// TestCM_52_RetryHoldsNoStage: not while it waits.
func TestCM_52_RetryHoldsNoStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		var refused atomic.Int64
		retry := func(target Target, err error, attempt int) (time.Duration, bool) {
			refused.Add(1)
			require.Equal(t, "absent:1", target.Addr)
			return time.Duration(attempt) * time.Second, attempt < 3
		}
		start, last := time.Now(), time.Duration(0)
		o := &Options{RNIC: client.rnic, QP: client.config(), Retry: retry, Stage: [8]int{1, 1, 1, 1, 1, 1, 1, 1}, InFlight: 50}
		for target, r := range DialMany(t.Context(), pipes(20, "absent:1", h.addr), o) {
			if target.Addr == h.addr {
				require.NoError(t, r.Err)
				require.NoError(t, r.QP.Abort())
				last = time.Since(start)
				continue
			}
			require.Equal(t, 3, r.Attempts)
			require.Equal(t, 3*time.Second, r.Elapsed, "of two waits")
			require.ErrorContains(t, r.Err, "attempt 3")
		}
		require.EqualValues(t, 60, refused.Load())
		require.Less(t, last, time.Second)
	})
}

// TestCM_52_TimeoutEndsTheWaitForAnAttempt: the result has both errors.
func TestCM_52_TimeoutEndsTheWaitForAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newEnd(t, iwarp.Limits{})
		_, all := collect(t, DialMany(t.Context(), pipes(1, "absent:1"), &Options{
			RNIC: client.rnic, QP: client.config(), Timeout: time.Second,
			Retry: func(Target, error, int) (time.Duration, bool) { return time.Minute, true },
		}))
		require.Equal(t, time.Second, all[0].Elapsed)
		require.ErrorIs(t, all[0].Err, context.DeadlineExceeded)
		require.ErrorIs(t, all[0].Err, syscall.ECONNREFUSED)
		require.Equal(t, 1, all[0].Attempts)
	})
}

// TestCM_52_WindowShrinksForDescriptors: with fewer descriptors than the window needs, every target
// succeeds nevertheless.
func TestCM_52_WindowShrinksForDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 50*time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		const descriptors = 3
		var used, exhausted atomic.Int64
		qc := client.config()
		qc.SetupTrace = &iwarp.SetupTrace{Enter: func(_ context.Context, s iwarp.SetupStage) error {
			if s == iwarp.StageDial && used.Add(1) > descriptors {
				used.Add(-1)
				exhausted.Add(1)
				return transport.Exhausted(syscall.EMFILE)
			}
			return nil
		}}
		o := &Options{RNIC: client.rnic, QP: qc, Retry: DefaultRetry, PerHost: -1, Timeout: -1}
		n := 0
		for _, r := range DialMany(t.Context(), pipes(200, h.addr), o) {
			require.NoError(t, r.Err)
			require.NoError(t, r.QP.Abort())
			used.Add(-1)
			n++
		}
		require.Equal(t, 200, n)
		require.NotZero(t, exhausted.Load())
	})
}

// TestCM_52_DescriptorsThatStayAway: the attempts of each target end.
func TestCM_52_DescriptorsThatStayAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newEnd(t, iwarp.Limits{})
		qc := client.config()
		qc.SetupTrace = &iwarp.SetupTrace{Enter: func(_ context.Context, s iwarp.SetupStage) error {
			return transport.Exhausted(syscall.ENOBUFS)
		}}
		_, all := collect(t, DialMany(t.Context(), pipes(100, "absent:1"), &Options{
			RNIC: client.rnic, QP: qc, Retry: DefaultRetry, Timeout: -1, InFlight: 50,
		}))
		require.Len(t, all, 100)
		for _, r := range all {
			require.ErrorIs(t, r.Err, transport.ErrExhausted)
		}
	})
}

type busyError bool

func (busyError) Error() string { return "busy" }
func (b busyError) Busy() bool  { return bool(b) }

// TestCM_52_DefaultRetry: what is retried, how often, and when.
func TestCM_52_DefaultRetry(t *testing.T) {
	for _, c := range []struct {
		err   error
		again bool
	}{
		{errTest, false},
		{transport.Exhausted(syscall.EMFILE), true},
		{fmt.Errorf("dial: %w", transport.Exhausted(syscall.ENOBUFS)), true},
		{fmt.Errorf("dial: %w", busyError(true)), true},
		{busyError(false), false},
		{context.DeadlineExceeded, false},
	} {
		_, again := DefaultRetry(Target{}, c.err, 1)
		require.Equal(t, c.again, again, "%v", c.err)
	}
	for range 100 {
		d, again := DefaultRetry(Target{}, busyError(true), 2)
		require.True(t, again)
		require.GreaterOrEqual(t, d, 10*time.Millisecond)
		require.LessOrEqual(t, d, 20*time.Millisecond)
	}
	_, again := DefaultRetry(Target{}, busyError(true), 3)
	require.False(t, again)
}

// TestCM_57_Backoff doubles up to its limit, and half of it is random.
func TestCM_57_Backoff(t *testing.T) {
	for _, attempt := range []int{1, 2, 12, 13, 16, 20, 21, 1000} {
		most := longestBackoff
		if attempt <= 12 {
			most = firstDelay << (attempt - 1)
		}
		drawn := make(map[time.Duration]bool)
		for range 100 {
			d := backoff(attempt)
			require.GreaterOrEqual(t, d, most/2, "attempt %d", attempt)
			require.LessOrEqual(t, d, most, "attempt %d", attempt)
			drawn[d] = true
		}
		require.Greater(t, len(drawn), 50, "attempt %d: peers do not come back at the same time", attempt)
	}
}

// TestCM_52_Window: it halves once for a burst, grows with success, and admits waiting attempts in
// turn.
func TestCM_52_Window(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWindow(8)
		var at [8]turn
		for i := range at {
			require.True(t, w.pull(ctx))
			at[i], _ = w.enter(ctx)
		}
		require.False(t, w.leave(exhausted, at[0]))
		require.Equal(t, 4, w.size, "the first halves it")
		require.False(t, w.leave(exhausted, at[1]))
		require.Equal(t, 4, w.size, "the second is of the same burst")
		require.False(t, w.leave(succeeded, at[2]))
		require.Equal(t, 5, w.size)
		entered := 0
		for range 2 {
			go func() {
				_, err := w.enter(ctx)
				require.NoError(t, err)
				entered++
			}()
			synctest.Wait()
		}
		require.Zero(t, entered)
		w.leave(failed, at[3])
		synctest.Wait()
		require.Equal(t, 1, entered)
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errTest)
		_, err := w.enter(ended)
		require.ErrorIs(t, err, errTest)
		synctest.Wait()
		require.Equal(t, 1, entered, "one that gives up makes no room")
		w.leave(succeeded, at[4])
		synctest.Wait()
		require.Equal(t, 2, entered, "one that has given up is passed over")
		for range 10 {
			w.active++
			w.leave(succeeded, turn{})
		}
		require.Equal(t, 8, w.size, "no more than at first")

		w.active = 0
		alone, err := w.enter(ctx)
		require.NoError(t, err)
		require.True(t, w.leave(exhausted, alone), "it was alone")
		require.Equal(t, 1, w.size)
		for range 8 {
			w.yielded()
		}
		require.True(t, w.pull(ctx))
		require.False(t, w.pull(ended))
		var none error
		require.Equal(t, succeeded, outcomeOf(none))
		require.Equal(t, failed, outcomeOf(errors.New("x")))
	})
}

// TestPatienceThatEndsWhenTheAddressHasConnected: it ends before the timer is stopped. The set-up fails in a later stage, and
// the next address is tried nevertheless.
func TestPatienceThatEndsWhenTheAddressHasConnected(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEnd(t, iwarp.Limits{})
	at := netip.MustParseAddrPort(h.addr)
	d := (&dialing{rnic: client.rnic, limits: newStageLimits([8]int{})}).newDialer()
	defer d.end()
	d.last = &lookup{addrs: []netip.Addr{at.Addr(), at.Addr()}}
	d.trace.Leave = func(s iwarp.SetupStage, err error) {
		if s == iwarp.StageDial && d.giveUp != nil {
			require.NoError(t, err)
			d.giveUp(errPatience) // like the timer
		}
		d.leave(s, err)
	}
	var res Result
	d.res = &res
	target := Target{Network: "tcp", Addr: h.addr}
	require.NoError(t, d.dialEach(t.Context(), &target, client.config(), &endpoint{port: at.Port()}))
	require.NoError(t, res.QP.Abort())
}

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short are the options of a short and patient run: the machine may be busy.
var short = options{time: time.Second, round: 400 * time.Millisecond, limit: time.Minute, goroutines: 16, pairs: 4, seed: 1}

func TestShortRunFindsNothing(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		o := short
		o.network = network
		var out strings.Builder
		err := run(&out, o)
		var f *finding
		if errors.As(err, &f) {
			t.Logf("%s\n%s", f.pairs, f.goroutines)
		}
		require.NoError(t, err)
		require.Contains(t, out.String(), "longest")
	}
}

func TestErrorBeforeTheEndIsAFinding(t *testing.T) {
	m := newMonitor(time.Minute)
	defer m.stop()
	r := &round{m: m, failed: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	require.True(t, r.expected(ctx, "a helper", nil))
	require.False(t, r.expected(ctx, "a helper", errors.New("the connection is gone")))
	require.ErrorContains(t, <-r.failed, "a helper: the connection is gone")
	cancel()
	require.True(t, r.expected(ctx, "a helper", ctx.Err()), "the context of the call has ended")
	require.Empty(t, r.failed)
	r.ending.Store(true)
	require.False(t, r.expected(context.Background(), "a helper", errors.New("the connection is gone")))
	require.Empty(t, r.failed, "it was ended")
}

// lasts makes a call that returns after d.
func (u *user) lasts(ctx context.Context, d time.Duration, may bool) error {
	return u.call(ctx, "a call", may, func() error {
		time.Sleep(d)
		return ctx.Err()
	})
}

func TestMonitorFindsACallThatWaitsTooLong(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		d     time.Duration
		may   bool
		found string
	}{
		{"in time", context.Background(), 4900 * time.Millisecond, false, ""},
		{"too long", context.Background(), 5100 * time.Millisecond, false, "a user: a call waits for"},
		{"it may", context.Background(), time.Hour, true, ""},
		{"its context has ended", ended, 4900 * time.Millisecond, true, ""},
		{"its context had ended long ago", ended, 5100 * time.Millisecond, true, "a user: a call has not returned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMonitor(5 * time.Second)
				defer m.stop()
				u := m.user("a user")
				defer u.leave()
				require.ErrorIs(t, u.lasts(c.ctx, c.d, c.may), c.ctx.Err())
				select {
				case what := <-m.found:
					require.NotEmpty(t, c.found, what)
					require.Contains(t, what, c.found)
				default:
					require.Empty(t, c.found)
				}
			})
		})
	}
}

func TestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMonitor(time.Minute)
		defer m.stop()
		u := m.user("a user")
		for range 98 {
			_ = u.lasts(context.Background(), time.Millisecond, false)
		}
		_ = u.lasts(context.Background(), time.Second, false)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = u.lasts(ctx, time.Hour, true)
		m.mu.Lock()
		require.InEpsilon(t, time.Millisecond, m.quantile(0.5), 0.1)
		require.InEpsilon(t, time.Millisecond, m.quantile(0.98), 0.1)
		require.InEpsilon(t, time.Second, m.quantile(1), 0.1)
		require.Equal(t, time.Second, m.longest)
		require.Equal(t, 1, m.cancelled)
		m.mu.Unlock()
	})
}

func TestFlagsAreChecked(t *testing.T) {
	o := short
	o.network = "tcp"
	require.NoError(t, o.check())
	for _, change := range []func(*options){
		func(o *options) { o.time = 0 },
		func(o *options) { o.limit = -1 },
		func(o *options) { o.pairs = 0 },
		func(o *options) { o.goroutines = -1 },
		func(o *options) { o.network = "udp" },
	} {
		bad := o
		change(&bad)
		require.Error(t, bad.check())
	}
}

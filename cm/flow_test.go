package cm

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestCM_48_AGoroutineThatGoesOnWithItsHostIsNotIdle: a target of another host does not wait for it.
func TestCM_48_AGoroutineThatGoesOnWithItsHostIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := func(context.Context, *task[string, int]) {}
		f := &flow[string, int]{window: newWindow(10), settle: none, drop: none, perGroup: 1}
		f.group = func(in *string) string { return (*in)[:1] }
		f.worker = func() (func(context.Context, *task[string, int]), func()) {
			return func(_ context.Context, t *task[string, int]) {
				if t.in == "slow 2" {
					time.Sleep(time.Hour)
				}
				time.Sleep(time.Second)
			}, func() {}
		}
		f.items = func(yield func(string) bool) {
			if yield("slow 1") && yield("slow 2") {
				time.Sleep(time.Minute)
				yield("quick")
			}
		}
		var order []string
		f.run(t.Context(), func(in string, _ int) bool {
			order = append(order, in)
			return true
		})
		require.Equal(t, []string{"slow 1", "quick", "slow 2"}, order)
	})
}

// TestCM_46_AnAttemptThatIsGivenUpAsItIsAdmitted leaves the window.
func TestCM_46_AnAttemptThatIsGivenUpAsItIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(1)
		_, err := w.enter(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := w.enter(ctx)
			ended <- err
		}()
		synctest.Wait()
		w.mu.Lock()
		cancel()
		w.drop()
		require.Equal(t, 1, w.active)
		w.mu.Unlock()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Zero(t, w.active)
	})
}

// TestCM_52_AResultThatWasYieldedMeanwhile may have held what the attempt lacked: the attempt was not alone.
func TestCM_52_AResultThatWasYieldedMeanwhile(t *testing.T) {
	w := newWindow(2)
	for _, ready := range []bool{true, false} {
		if ready {
			w.finished()
		}
		turn, err := w.enter(t.Context())
		require.NoError(t, err)
		if ready {
			w.yielded()
		}
		require.Equal(t, !ready, w.leave(exhausted, turn))
	}
}

// TestCM_46_ATraceThatRefusesAStage takes no room of it.
func TestCM_46_ATraceThatRefusesAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := (&dialing{limits: newStageLimits([8]int{StageReply: 1})}).newDialer()
		d.res, d.user = new(Result), &iwarp.SetupTrace{Enter: func(context.Context, iwarp.SetupStage) error { return net.ErrClosed }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 {
			require.ErrorIs(t, d.enter(ctx, iwarp.SetupStage(StageReply-StageQP)), net.ErrClosed)
		}
	})
}

package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScaleHasBounds(t *testing.T) {
	for measured, want := range map[float64]float64{0.3: 1, 1: 1, 2.5: 2.5, 400: Ceiling} {
		require.InDelta(t, want, New(func() float64 { return measured }).Scale(), 1e-9, "measured %v", measured)
	}
}

func TestScaleIsMeasuredAgainWhenItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		measured := 0
		g := New(func() float64 { measured++; return 3 })
		require.Equal(t, 6*time.Second, g.Stretch(2*time.Second))
		time.Sleep(fresh - 1)
		g.Scale()
		require.Equal(t, 1, measured, "once")
		time.Sleep(time.Nanosecond)
		g.Scale()
		require.Equal(t, 2, measured, "again")
	})
}

// passes returns how long a limit lasts if scale gives the scale at each time since its beginning.
func passes(t *testing.T, limit time.Duration, scale func(since time.Duration) float64) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		began, over := time.Now(), errors.New("over")
		g := New(func() float64 { return scale(time.Since(began)) })
		ctx, cancel := g.Context(t.Context(), limit, over)
		defer cancel()
		<-ctx.Done()
		require.Equal(t, over, context.Cause(ctx))
		took = time.Since(began)
	})
	return took
}

func TestLimitOfAnIdleMachine(t *testing.T) {
	for _, limit := range []time.Duration{1, time.Second, 2 * time.Second, time.Minute, 7 * time.Minute} {
		require.Equal(t, limit, passes(t, limit, func(time.Duration) float64 { return 0.8 }))
	}
}

func TestLimitOfABusyMachine(t *testing.T) {
	require.Equal(t, 4*time.Minute, passes(t, time.Minute, func(time.Duration) float64 { return 4 }))
	require.Equal(t, Ceiling*time.Minute, passes(t, time.Minute, func(time.Duration) float64 { return 1000 }), "no hang lasts for ever")
}

func TestLoadThatComesAndGoesCounts(t *testing.T) {
	took := passes(t, 40*time.Second, func(since time.Duration) float64 {
		if since >= 10*time.Second && since < 40*time.Second {
			return 3
		}
		return 1
	})
	require.Equal(t, 60*time.Second, took, "10 s, 30 s in which 10 s pass, and 20 s")
}

func TestContextEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancelCause(t.Context())
		g := New(func() float64 { return 1 })
		ctx, cancel := g.Context(parent, time.Hour, nil)
		defer cancel()
		end(context.Canceled)
		<-ctx.Done()
		require.Equal(t, context.Canceled, context.Cause(ctx))

		late, cancelLate := g.Context(t.Context(), time.Second, nil)
		defer cancelLate()
		<-late.Done()
		require.Equal(t, context.DeadlineExceeded, context.Cause(late), "without a cause")
	})
}

func TestWorkTakesTime(t *testing.T) {
	require.Positive(t, slowness())
	require.NotZero(t, work())
}

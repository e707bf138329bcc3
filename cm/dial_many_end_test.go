package cm

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// endless yields one target for ever, and counts.
func endless(target Target, pulled *gauge) func(func(Target) bool) {
	return func(yield func(Target) bool) {
		for {
			pulled.add(1)
			if !yield(target) {
				return
			}
		}
	}
}

// TestCM_49_50_BreakOutOfAnEndlessSequence: no QP is left. No goroutine is either, or the bubble would not end.
func TestCM_49_50_BreakOutOfAnEndlessSequence(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := listens(t, "pipe", "", 10*time.Millisecond)
			client := newEnd(t, iwarp.Limits{})
			var pulled gauge
			n := 0
			o := &Options{RNIC: client.rnic, QP: client.config(), InFlight: 20, Ordered: ordered}
			for _, r := range DialMany(t.Context(), endless(Target{Network: "pipe", Addr: h.addr}, &pulled), o) {
				require.NoError(t, r.Err)
				require.NoError(t, r.QP.Abort())
				if n++; n == 50 {
					break
				}
			}
			client.waitsUntilIdle()
			require.LessOrEqual(t, pulled.now.Load(), int64(50+20))
		})
	}
}

// TestCM_49_BreakEndsWhatIsUnderWay: including set-ups that wait for an answer, a stage, their host
// or another attempt, and results that wait for their turn.
func TestCM_49_BreakEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gone := listens(t, "pipe", "", time.Millisecond), dead(t, "gone:1")
		client := newEnd(t, iwarp.Limits{})
		o := &Options{
			RNIC: client.rnic, QP: client.config(), InFlight: 40, PerHost: 10, Stage: [8]int{StageReply: 15},
			Retry: func(Target, error, int) (time.Duration, bool) { return time.Hour, true },
		}
		start := time.Now()
		for _, r := range DialMany(t.Context(), pipes(8, h.addr, "absent:1", gone, gone, h.addr), o) {
			require.NoError(t, r.QP.Abort())
			break
		}
		require.Less(t, time.Since(start), time.Second)
		client.waitsUntilIdle()
	})
}

// TestCM_49_EndOfTheContext: each pulled target gets a result without a QP.
func TestCM_49_EndOfTheContext(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h, gone := listens(t, "pipe", "", time.Millisecond), dead(t, "gone:1")
			client := newEnd(t, iwarp.Limits{})
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errTest) })
			var pulled gauge
			targets := func(yield func(Target) bool) {
				for target := range pipes(100, gone, h.addr) {
					pulled.add(1)
					if !yield(target) {
						return
					}
				}
			}
			o := &Options{RNIC: client.rnic, QP: client.config(), InFlight: 50, PerHost: 10, Ordered: ordered, Timeout: -1}
			start := time.Now()
			got, all := collect(t, DialMany(ctx, targets, o))
			require.Equal(t, time.Second, time.Since(start))
			require.EqualValues(t, pulled.now.Load(), len(all))
			if ordered {
				require.Equal(t, upTo(len(all)), tags(got))
			}
			for i, r := range all {
				if got[i].Addr == gone {
					require.ErrorIs(t, r.Err, context.Canceled)
				}
			}
			require.NotZero(t, countFailed(all))
			client.waitsUntilIdle()
		})
	}
}

// TestCM_49_FinishedAndNotYielded: the QP is ended, and the result says why.
func TestCM_49_FinishedAndNotYielded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		n := 0
		for _, r := range DialMany(ctx, pipes(10, h.addr), &Options{RNIC: client.rnic, QP: client.config()}) {
			if n++; n == 1 {
				require.NoError(t, r.QP.Abort())
				time.Sleep(time.Second)
				require.EqualValues(t, 10, h.accepted.Load())
				cancel(errTest)
				continue
			}
			require.Nil(t, r.QP)
			require.ErrorIs(t, r.Err, errTest)
		}
		require.Equal(t, 10, n)
		client.waitsUntilIdle()
	})
}

// TestCM_50_PanicsReachTheCaller: panics of the sequence and of the loop.
func TestCM_50_PanicsReachTheCaller(t *testing.T) {
	for _, inLoop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h, gone := listens(t, "pipe", "", time.Millisecond), dead(t, "gone:1")
			client := newEnd(t, iwarp.Limits{})
			targets := func(yield func(Target) bool) {
				for target := range pipes(20, gone, h.addr) {
					if target.Tag == 30 && !inLoop {
						panic(errTest)
					}
					if !yield(target) {
						return
					}
				}
			}
			require.PanicsWithValue(t, errTest, func() {
				for _, r := range DialMany(t.Context(), targets, &Options{RNIC: client.rnic, QP: client.config()}) {
					if r.QP != nil {
						require.NoError(t, r.QP.Abort())
					}
					if inLoop {
						panic(errTest)
					}
				}
			})
			client.waitsUntilIdle()
		})
	}
}

// TestCM_50_GoroutinesThatEnd: by runtime.Goexit, like testing.T.FailNow, in the sequence, in
// the loop and in QPConfig.Setup, even while other targets wait for their host.
func TestCM_50_GoroutinesThatEnd(t *testing.T) {
	for _, where := range []string{"sequence", "loop", "Setup"} {
		synctest.Test(t, func(t *testing.T) {
			h := listens(t, "pipe", "", time.Millisecond)
			client := newEnd(t, iwarp.Limits{})
			ends := func(here string) {
				if where == here {
					runtime.Goexit()
				}
			}
			qc := client.config()
			qc.Setup = func(context.Context, *iwarp.QP) error { ends("Setup"); return nil }
			targets := func(yield func(Target) bool) {
				pipes(2, h.addr)(yield)
				ends("sequence")
			}
			ended := make(chan bool)
			returned := false
			go func() {
				defer close(ended)
				for _, r := range DialMany(t.Context(), targets, &Options{RNIC: client.rnic, QP: qc, PerHost: 1}) {
					if r.QP != nil {
						_ = r.QP.Abort()
					}
					ends("loop")
				}
				returned = true
			}()
			<-ended
			require.False(t, returned, "the goroutine of the caller ends, too")
		})
	}
}

// TestCM_47_50_NothingIsYieldedOfAGoroutineThatHasEnded: a target whose Setup ends its goroutine has no result. It may end
// before the caller's goroutine checks the results again.
func TestCM_47_50_NothingIsYieldedOfAGoroutineThatHasEnded(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			h := listens(t, "pipe", "", time.Millisecond)
			client := newEnd(t, iwarp.Limits{})
			ends := client.config()
			ends.Setup = func(context.Context, *iwarp.QP) error {
				time.Sleep(time.Second)
				runtime.Goexit()
				return nil
			}
			targets := func(yield func(Target) bool) {
				for _, qc := range []*iwarp.QPConfig{nil, ends} {
					yield(Target{Network: "pipe", Addr: h.addr, QP: qc})
				}
			}
			ended := make(chan int)
			go func() {
				yielded := 0
				defer func() { ended <- yielded }()
				for _, r := range DialMany(t.Context(), targets, &Options{RNIC: client.rnic, QP: client.config()}) {
					yielded++
					if r.QP != nil {
						_ = r.QP.Abort()
					}
					time.Sleep(2 * time.Second)
				}
			}()
			require.Equal(t, 1, <-ended)
		})
	}
}

// TestCM_55_GoroutinesOfARun: there are no more than set-ups in progress, however many targets there are.
func TestCM_55_GoroutinesOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := dead(t, "gone:1")
		client := newEnd(t, iwarp.Limits{})
		before := runtime.NumGoroutine()
		time.AfterFunc(time.Second, func() {
			// The goroutine that pulls, this one, and the set-ups; others may belong to other tests.
			require.LessOrEqual(t, runtime.NumGoroutine()-before, 20+2+3)
		})
		_, all := collect(t, DialMany(t.Context(), pipes(400, gone), &Options{
			RNIC: client.rnic, QP: client.config(), InFlight: 100, PerHost: 20, Timeout: 2 * time.Second,
		}))
		require.Len(t, all, 400)
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine(), before+3)
	})
}

package cm

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestCM_47_RoomInAStageIsNotTheTargetsTime: a target that gets no answer occupies the slot until its own time is over.
func TestCM_47_RoomInAStageIsNotTheTargetsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gone := listens(t, "pipe", "", time.Millisecond), dead(t, "gone:1")
		client := newEnd(t, iwarp.Limits{})
		targets := func(yield func(Target) bool) {
			if yield(Target{Network: "pipe", Addr: gone, Timeout: 3 * time.Second}) {
				time.Sleep(time.Second / 2) // until it has the slot
				yield(Target{Network: "pipe", Addr: h.addr, Timeout: time.Second})
			}
		}
		o := &Options{RNIC: client.rnic, QP: client.config(), Stage: [8]int{StageReply: 1}}
		for target, r := range DialMany(t.Context(), targets, o) {
			if target.Addr == gone {
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
				require.Equal(t, 3*time.Second, r.Elapsed)
				continue
			}
			require.NoError(t, r.Err)
			require.NoError(t, r.QP.Abort())
		}
		client.waitsUntilIdle()
	})
}

// TestCM_47_RoomForALookupIsNotTheTargetsTime: but the lookup itself is.
func TestCM_47_RoomForALookupIsNotTheTargetsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := (&dialing{limits: newStageLimits([8]int{StageResolve: 1})}).newDialer()
		r := &resolver{net: net.DefaultResolver, all: new(sync.WaitGroup), slots: d.limits.slots[StageResolve], ctx: t.Context(), known: make(map[hostName]*lookup)}
		r.slots <- struct{}{}
		ctx := d.limit.begin(t.Context(), time.Second)
		defer d.limit.close()
		resolved := make(chan error)
		go func() {
			_, err := r.resolve(ctx, &d.limit, hostName{"ip", "127.0.0.1"}, nil, func() error { return nil })
			resolved <- err
		}()
		time.Sleep(time.Minute)
		r.slots.give()
		require.NoError(t, <-resolved)
		time.Sleep(999 * time.Millisecond)
		require.NoError(t, ctx.Err())
		time.Sleep(2 * time.Millisecond)
		require.Error(t, ctx.Err())
	})
}

// TestCM_46_RoomForALookupThatHasBegun, which two goroutines get at the same time: one of them gives it back.
func TestCM_46_RoomForALookupThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(semaphore, 2)
		r := &resolver{net: net.DefaultResolver, all: new(sync.WaitGroup), slots: slots, ctx: t.Context(), known: make(map[hostName]*lookup)}
		resolved := make(chan error, 2)
		for range 2 {
			slots <- struct{}{}
			go func() {
				_, err := r.resolve(t.Context(), &timeLimit{}, hostName{"ip", "127.0.0.1"}, nil, func() error { return nil })
				resolved <- err
			}()
		}
		synctest.Wait()
		r.mu.Lock() // until both have room, no lookup begins
		slots.give()
		slots.give()
		r.mu.Unlock()
		for range 2 {
			require.NoError(t, <-resolved)
		}
		r.all.Wait()
		require.Empty(t, slots)
	})
}

// TestCM_48_HandshakeThatWaitsKeepsNoRoom: other connected set-ups can use it, unless Options.Stage sets a limit.
func TestCM_48_HandshakeThatWaitsKeepsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := func(l *stageLimits) *dialer {
			d := (&dialing{limits: l}).newDialer()
			d.res = new(Result)
			require.NoError(t, d.enter(t.Context(), iwarp.StageSecure))
			return d
		}
		l, start := newStageLimits([8]int{}), time.Now()
		var all []*dialer
		for range 2 * runtime.GOMAXPROCS(0) {
			all = append(all, begin(l))
		}
		require.Zero(t, time.Since(start))
		all[0].leave(iwarp.StageSecure, nil)
		all[0] = begin(l)
		require.Zero(t, time.Since(start), "one has ended")
		all = append(all, begin(l))
		require.Equal(t, computing, time.Since(start))
		for _, d := range all {
			d.leave(iwarp.StageSecure, nil)
		}
		time.Sleep(computing)
		require.Empty(t, l.slots[StageSecure])

		l = newStageLimits([8]int{StageSecure: 1})
		first := begin(l)
		time.AfterFunc(time.Hour, func() { first.leave(iwarp.StageSecure, nil) })
		start = time.Now()
		begin(l).leave(iwarp.StageSecure, nil)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

// TestCM_48_SetupsThatWaitForAnAnswerKeepNoRoom: all of them can wait for their peers at the same time.
func TestCM_48_SetupsThatWaitForAnAnswerKeepNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		client := newEnd(t, iwarp.Limits{})
		var reply gauge
		qc := client.config()
		qc.SetupTrace = &iwarp.SetupTrace{
			Enter: func(_ context.Context, s iwarp.SetupStage) error {
				if s == iwarp.StageReply {
					reply.add(1)
				}
				return nil
			},
			Leave: func(s iwarp.SetupStage, _ error) {
				if s == iwarp.StageReply {
					reply.add(-1)
				}
			},
		}
		var addrs []string
		for range 10 { // the backlog of one listener is too short for all of them
			addrs = append(addrs, listens(t, "pipe", "", time.Second).addr)
		}
		_, all := collect(t, DialMany(t.Context(), pipes(n/len(addrs), addrs...), &Options{RNIC: client.rnic, QP: qc, InFlight: n, PerHost: -1}))
		require.Zero(t, countFailed(all))
		require.EqualValues(t, n, reply.most.Load())
		client.waitsUntilIdle()
	})
}

package cm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestCM_45_StagesOfConnectionsOverlap: and each connection passes them in order.
func TestCM_45_StagesOfConnectionsOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 30*time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		var mu sync.Mutex
		of := make(map[int][]iwarp.SetupStage)
		targets := func(yield func(Target) bool) {
			for i := range 16 {
				qc := client.config()
				qc.SetupTrace = &iwarp.SetupTrace{
					Enter: func(_ context.Context, s iwarp.SetupStage) error {
						mu.Lock()
						defer mu.Unlock()
						of[i] = append(of[i], s)
						return nil
					},
					Leave: func(s iwarp.SetupStage, err error) {
						mu.Lock()
						defer mu.Unlock()
						require.NoError(t, err)
						require.Equal(t, s, of[i][len(of[i])-1])
					},
				}
				if !yield(Target{Network: "pipe", Addr: h.addr, QP: qc, Tag: i}) {
					return
				}
			}
		}
		start := time.Now()
		targetsOut, all := collect(t, DialMany(t.Context(), targets, &Options{RNIC: client.rnic}))
		require.Equal(t, 30*time.Millisecond, time.Since(start), "sixteen take the time of one")
		require.Equal(t, upTo(16), sorted(tags(targetsOut)))
		require.Zero(t, countFailed(all))
		for i := range 16 {
			require.Equal(t, []iwarp.SetupStage{
				iwarp.StageQP, iwarp.StageDial, iwarp.StageRequest, iwarp.StageReply, iwarp.StageConfirm, iwarp.StageReady,
			}, of[i])
			require.Equal(t, 30*time.Millisecond, all[i].Times[StageReply])
			require.Equal(t, 30*time.Millisecond, all[i].Elapsed)
			require.Equal(t, 1, all[i].Attempts)
		}
	})
}

// TestCM_46_WindowAndLimitsHold: the limits of targets, stages and hosts.
func TestCM_46_WindowAndLimitsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pulled, reply, dials gauge
		listens(t, "pipe", "a:1", time.Millisecond)
		listens(t, "pipe", "b:1", time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		at := map[string]*gauge{"a": new(gauge), "b": new(gauge)}
		traced := func(g *gauge) *iwarp.QPConfig {
			qc := client.config()
			qc.SetupTrace = &iwarp.SetupTrace{
				Enter: func(_ context.Context, s iwarp.SetupStage) error {
					switch s {
					case iwarp.StageQP:
						g.add(1)
					case iwarp.StageDial:
						dials.add(1)
					case iwarp.StageReply:
						reply.add(1)
					default:
					}
					return nil
				},
				Leave: func(s iwarp.SetupStage, _ error) {
					switch s {
					case iwarp.StageReady:
						g.add(-1)
					case iwarp.StageDial:
						dials.add(-1)
					case iwarp.StageReply:
						reply.add(-1)
					default:
					}
				},
			}
			return qc
		}
		configs := map[string]*iwarp.QPConfig{"a": traced(at["a"]), "b": traced(at["b"])}
		targets := func(yield func(Target) bool) {
			for i := range 300 {
				name := []string{"a", "a", "b"}[i%3]
				pulled.add(1)
				if !yield(Target{Network: "pipe", Addr: name + ":1", QP: configs[name]}) {
					return
				}
			}
		}
		n := 0
		o := &Options{RNIC: client.rnic, InFlight: 20, PerHost: 8, Stage: [8]int{StageReply: 10, StageDial: 3}}
		for _, r := range DialMany(t.Context(), targets, o) {
			pulled.add(-1)
			require.NoError(t, r.Err)
			require.NoError(t, r.QP.Abort())
			n++
		}
		require.Equal(t, 300, n)
		require.EqualValues(t, 20, pulled.most.Load())
		require.EqualValues(t, 10, reply.most.Load())
		require.LessOrEqual(t, dials.most.Load(), int64(3))
		require.EqualValues(t, 8, at["a"].most.Load())
		require.LessOrEqual(t, at["b"].most.Load(), int64(8))
	})
}

// TestCM_46_DeadHostKeepsNoStageFromOthers: it occupies its share of the stages, and no more.
func TestCM_46_DeadHostKeepsNoStageFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		gone := dead(t, "gone:1")
		client := newEnd(t, iwarp.Limits{})
		var first, last time.Duration
		start := time.Now()
		targets := func(yield func(Target) bool) {
			for i := range 200 {
				addr := h.addr
				if i%10 == 0 { // 20 of them
					addr = gone
				}
				if !yield(Target{Network: "pipe", Addr: addr}) {
					return
				}
			}
		}
		o := &Options{
			RNIC: client.rnic, QP: client.config(), InFlight: 32, PerHost: 4, Timeout: time.Minute,
			Stage: [8]int{StageReply: 8},
		}
		for target, r := range DialMany(t.Context(), targets, o) {
			if target.Addr == gone {
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
				require.Equal(t, StageReply, r.Stage)
				last = time.Since(start)
				continue
			}
			require.NoError(t, r.Err)
			require.NoError(t, r.QP.Abort())
			first = time.Since(start)
		}
		require.Less(t, first, time.Second, "the others do not wait for it")
		require.Equal(t, 5*time.Minute, last, "it is tried four at a time")
	})
}

// TestCM_47_48_OneResultForEachTarget: a hundred of a thousand fail, which does not affect the others.
func TestCM_47_48_OneResultForEachTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		targets := func(yield func(Target) bool) {
			for i := range 1000 {
				addr := h.addr
				if i%10 == 3 {
					addr = fmt.Sprintf("absent%d:1", i)
				}
				if !yield(Target{Network: "pipe", Addr: addr, Tag: i}) {
					return
				}
			}
		}
		got, all := collect(t, DialMany(t.Context(), targets, &Options{RNIC: client.rnic, QP: client.config(), InFlight: 100}))
		require.Equal(t, 100, countFailed(all))
		for i, r := range all {
			require.Equal(t, got[i].Tag.(int)%10 == 3, r.Err != nil)
			if r.Err != nil {
				require.Equal(t, StageDial, r.Stage)
				require.ErrorContains(t, r.Err, "cm: set up pipe absent")
				require.ErrorContains(t, r.Err, "stage dial")
			}
		}
		require.Equal(t, upTo(1000), sorted(tags(got)))
		client.waitsUntilIdle()
	})
}

// TestCM_51_OrderOfTheTargets: and the results that are held back are bounded.
func TestCM_51_OrderOfTheTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, slow := listens(t, "pipe", "", time.Millisecond), listens(t, "pipe", "", time.Second)
		client := newEnd(t, iwarp.Limits{})
		var pulled gauge
		targets := func(yield func(Target) bool) {
			for target := range pipes(20, slow.addr, h.addr, h.addr, h.addr, h.addr) {
				pulled.add(1)
				if !yield(target) {
					return
				}
			}
		}
		var got []Target
		o := &Options{RNIC: client.rnic, QP: client.config(), Ordered: true, InFlight: 10}
		for target, r := range DialMany(t.Context(), targets, o) {
			pulled.add(-1)
			require.NoError(t, r.Err)
			require.NoError(t, r.QP.Abort())
			got = append(got, target)
		}
		require.Equal(t, upTo(100), tags(got))
		require.LessOrEqual(t, pulled.most.Load(), int64(10))
		client.waitsUntilIdle()
	})
}

// TestCM_47_TimeoutIsOfEachTarget: it does not count while the target waits for its host.
func TestCM_47_TimeoutIsOfEachTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := dead(t, "gone:1")
		client := newEnd(t, iwarp.Limits{})
		targets := slices.Values([]Target{
			{Network: "pipe", Addr: gone}, {Network: "pipe", Addr: gone, Timeout: time.Second}, {Network: "pipe", Addr: gone},
		})
		_, all := collect(t, DialMany(t.Context(), targets, &Options{
			RNIC: client.rnic, QP: client.config(), Timeout: 3 * time.Second, PerHost: 2,
		}))
		require.Equal(t, 3, countFailed(all))
		require.Equal(t, time.Second, all[0].Elapsed)
		require.Equal(t, 3*time.Second, all[1].Elapsed)
		require.Equal(t, 4*time.Second, all[2].Elapsed, "one second for the host, three to be set up")
		for _, r := range all {
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			require.NotErrorIs(t, r.Err, context.Canceled, "that is for the caller's")
		}
		client.waitsUntilIdle()
	})
}

// TestCM_47_TimeoutOfOneIsNotOfTheNext: which the same goroutine sets up.
func TestCM_47_TimeoutOfOneIsNotOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gone := listens(t, "pipe", "", 600*time.Millisecond), dead(t, "gone:1")
		client := newEnd(t, iwarp.Limits{})
		o := &Options{RNIC: client.rnic, QP: client.config(), Timeout: time.Second, InFlight: 1}
		for target, r := range DialMany(t.Context(), pipes(3, h.addr, gone, h.addr, h.addr, gone, gone), o) {
			require.Equal(t, target.Addr == gone, r.Err != nil, "%v", r.Err)
			if r.QP != nil {
				require.NoError(t, r.QP.Abort())
			} else {
				require.Equal(t, time.Second, r.Elapsed)
			}
		}
	})
}

// TestCM_47_ResultsDoNotWaitForTheSequence: it waits for the caller to use the results.
func TestCM_47_ResultsDoNotWaitForTheSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", time.Millisecond)
		client := newEnd(t, iwarp.Limits{})
		more := make(chan bool, 1)
		more <- true
		targets := func(yield func(Target) bool) {
			for <-more {
				if !yield(Target{Network: "pipe", Addr: h.addr}) {
					return
				}
			}
		}
		n := 0
		for _, r := range DialMany(t.Context(), targets, &Options{RNIC: client.rnic, QP: client.config()}) {
			require.NoError(t, r.Err)
			require.NoError(t, r.QP.Abort())
			n++
			more <- n < 10
		}
		require.Equal(t, 10, n)
	})
}

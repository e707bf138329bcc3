package iwarp_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
)

// The atomic operations of many QPs are compared with one integer used by one QP at a time: there must be an order of
// all operations that explains every answer, and in which an operation that ended before another began comes first.
// Package porcupine looks for that order.

// An atomicCall is one operation on a cell, as it was requested.
type atomicCall struct {
	history  int // the history it belongs to: its cell and round
	begin    bool
	compares bool
	a, b     uint64 // the value to add; to compare and to swap in; begin: the value
}

// cellModel models one integer.
var cellModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		var parts [][]porcupine.Operation
		for _, op := range all {
			h := op.Input.(atomicCall).history
			for len(parts) <= h {
				parts = append(parts, nil)
			}
			parts[h] = append(parts[h], op)
		}
		return parts
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		v, call := state.(uint64), input.(atomicCall)
		switch {
		case call.begin:
			return true, call.a
		case output.(uint64) != v:
			return false, v
		case !call.compares:
			return true, v + call.a
		case call.a == v:
			return true, call.b
		default:
			return true, v
		}
	},
}

// A swarm is many QPs that work on the same cells.
type swarm struct {
	start time.Time
	mem   []byte // of the cells
	at    []iwarp.RemoteBuffer
	qps   []*iwarp.QP
	ops   []porcupine.Operation
}

// round performs n operations on random cells with every QP, one after the other, and
// records one history for each cell of the round.
func (s *swarm) round(t *testing.T, number, n int) {
	first := number * len(s.at)
	for cell := range s.at {
		now := int64(time.Since(s.start))
		value := atomic.LoadUint64(word(s.mem, 8*cell))
		s.ops = append(s.ops, porcupine.Operation{Input: atomicCall{history: first + cell, begin: true, a: value}, Call: now, Return: now})
	}
	ops := make([][]porcupine.Operation, len(s.qps))
	var all sync.WaitGroup
	for i, qp := range s.qps {
		random := rand.New(rand.NewPCG(uint64(i), uint64(number)))
		seen := make([]uint64, len(s.at))
		all.Go(func() {
			ctx := testContext(t)
			for range n {
				cell := random.IntN(len(s.at))
				call := atomicCall{history: first + cell, compares: random.IntN(2) == 0, a: random.Uint64()}
				op := porcupine.Operation{ClientId: i, Call: int64(time.Since(s.start))}
				var old uint64
				var err error
				if call.compares {
					call.a, call.b = seen[cell], random.Uint64()
					old, err = qp.CompareSwap(ctx, s.at[cell], call.a, call.b)
				} else {
					old, err = qp.FetchAdd(ctx, s.at[cell], call.a)
				}
				if err != nil {
					t.Error(err)
					return
				}
				op.Input, op.Output, op.Return = call, old, int64(time.Since(s.start))
				ops[i] = append(ops[i], op)
				seen[cell] = old
				if !call.compares {
					seen[cell] += call.a
				}
			}
		})
	}
	all.Wait()
	for _, o := range ops {
		s.ops = append(s.ops, o...)
	}
}

func TestEXT_48_AtomicsAreLinearizable(t *testing.T) {
	const qps, cells, rounds = 8, 4, 20
	n := 10_000 / rounds
	if raceorder.Enabled {
		n /= 10
	}
	client, server := newSide(t, nil), newSide(t, nil)
	s := &swarm{start: time.Now()}
	var mr *iwarp.MR
	s.mem, mr = server.register(8*cells, stag.LocalWrite|stag.RemoteAtomic, nil)
	for cell := range cells {
		s.at = append(s.at, mr.Advertise(8*cell, 8))
	}
	for range qps {
		client.connect(server, pairConfig{})
		s.qps = append(s.qps, client.qp)
	}
	for number := range rounds {
		s.round(t, number, n)
	}
	require.False(t, t.Failed())
	require.Len(t, s.ops, rounds*(qps*n+cells))
	worked := time.Since(s.start)
	result := porcupine.CheckOperationsTimeout(cellModel, s.ops, 20*time.Second)
	require.Equal(t, porcupine.Ok, result, "%d operations, done in %v", len(s.ops), worked)
	t.Logf("%d operations in %v, checked in %v", len(s.ops), worked, time.Since(s.start)-worked)
}

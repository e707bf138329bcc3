package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// A call is one operation on a key, as it was requested.
type call struct {
	what  byte // g, p or d
	key   int
	value string // of a Put
}

// keyModel models one key: package porcupine looks for an order of all operations that explains every answer, and that
// keeps an operation that ended before another began in front of it. The state is the value; the empty string stands for
// no value.
var keyModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := make(map[int][]porcupine.Operation)
		for _, op := range all {
			k := op.Input.(call).key
			parts[k] = append(parts[k], op)
		}
		return slices.Collect(maps.Values(parts))
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		switch c := input.(call); c.what {
		case 'p':
			return true, c.value
		case 'd':
			return true, ""
		default:
			return output.(string) == state.(string), state
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%.20v -> %.20v", input, output) },
}

// A history is what clients have seen.
type history struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
	// Changes with unknown effect, refused changes, and Gets that failed.
	uncertain, refused, failed int
}

// do performs one operation and records it. An operation without effect is left out. An operation that may have an
// effect, now or later, has no end.
func (h *history) do(ctx context.Context, c *Client, client int, in call) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: h.clock.Add(1)}
	key := []byte(keyOf(in.key))
	var err error
	switch in.what {
	case 'p':
		err = c.Put(ctx, key, []byte(in.value))
	case 'd':
		err = c.Delete(ctx, key)
	default:
		var value []byte
		if value, err = c.Get(ctx, key); errors.Is(err, ErrNotFound) {
			err = nil
		}
		op.Output = string(value)
	}
	op.Return = h.clock.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, ErrUncertain):
		op.Return = math.MaxInt64
		h.uncertain++
	case err != nil && in.what == 'g':
		h.failed++
		return
	case err != nil:
		h.refused++
		return
	}
	h.ops = append(h.ops, op)
}

// padding makes values so long that the log is compacted now and then.
var padding = strings.Repeat("x", 5000)

// swarm makes clients perform operations on few keys until over is set. Each client has a connection of its own.
func (w *world) swarm(h *history, n int, over *atomic.Bool, seed uint64) (wait func()) {
	var keys []int // mostly keys that are read from the primary
	for i := 0; len(keys) < 4; i++ {
		if first([]byte(keyOf(i))) == 0 || len(keys) == 3 {
			keys = append(keys, i)
		}
	}
	var tasks sync.WaitGroup
	for i := range n {
		c := w.customClient("alpha", 0, i%2*100)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		tasks.Go(func() {
			for k := 0; !over.Load(); k++ {
				in := call{what: "ggggggggppd"[random.IntN(11)], key: keys[random.IntN(len(keys))]}
				if in.what == 'p' {
					in.value = fmt.Sprintf("%d of %d %s", k, i, padding)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
				h.do(ctx, c, i, in)
				cancel()
				time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
			}
		})
	}
	return tasks.Wait
}

// check looks for such an order.
func (h *history) check(t *testing.T, atLeast int) {
	t.Helper()
	require.Greater(t, len(h.ops), atLeast)
	result := porcupine.CheckOperationsTimeout(keyModel, h.ops, 30*time.Second)
	require.Equal(t, porcupine.Ok, result, "%d operations", len(h.ops))
	t.Logf("%d operations, %d changes uncertain, %d refused, %d Gets failed", len(h.ops), h.uncertain, h.refused, h.failed)
}

// testLinearizable records a history in which keys rotate, and in which the primary and the backup are lost and come
// back in the midst of changes.
func testLinearizable(t *testing.T, network string, seed uint64, rounds int) {
	w := newWorld(t, network)
	w.half = (4*maxChange + 7) &^ 7
	w.hold = func(stage) { time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) }
	w.start()
	h := new(history)
	var over atomic.Bool
	wait := w.swarm(h, 6, &over, seed)
	random := rand.New(rand.NewPCG(seed, 1000))
	pause := func() { time.Sleep(time.Duration(20+random.IntN(60)) * time.Millisecond) }
	rotate := func() {
		for range 2 {
			for _, r := range []*Replica{w.primary, w.backup} {
				_, err := r.Rekey(w.context(), "alpha", time.Duration(random.IntN(2))*time.Millisecond)
				require.NoError(t, err)
			}
			pause()
		}
	}
	for range rounds {
		rotate()
		w.kill(w.primary)
		pause()
		w.startPrimary()
		w.settle()
		rotate()
		w.kill(w.backup)
		pause()
		w.startBackup()
		w.settle()
	}
	rotate()
	over.Store(true)
	wait()
	if network == "pipe" { // its time does not depend on the machine's load
		require.Greater(t, w.primary.log.mark.generation, uint32(1), "the log was compacted")
	}
	h.check(t, 20*rounds)
}

func TestLinearizable(t *testing.T) {
	for seed := range uint64(2) {
		bubble(t, func(t *testing.T) { testLinearizable(t, "pipe", seed, 2) })
	}
}

func TestLinearizableOverTCP(t *testing.T) { testLinearizable(t, "tcp", 1, 2) }

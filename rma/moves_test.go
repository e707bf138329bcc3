package rma

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// woken tells which moves have been woken since it was called last.
func woken(all []*move) (numbers []int) {
	for i, m := range all {
		select {
		case <-m.woken:
			numbers = append(numbers, i)
		default:
		}
	}
	return numbers
}

// TestOneOfTheMovesThatWaitIsWoken, however many there are: each operation would cost the more, the more calls there are.
func TestOneOfTheMovesThatWaitIsWoken(t *testing.T) {
	e := NewExecutor()
	all := make([]*move, 5)
	for i := range all {
		all[i] = e.move()
		e.waiting.join(all[i])
	}
	e.waiting.join(all[0])
	require.Empty(t, woken(all))
	e.issued()
	require.Equal(t, []int{0}, woken(all))
	e.leave(all[2])
	e.leave(all[4])
	require.Empty(t, woken(all), "the first one is the same")
	e.leave(all[0])
	require.Equal(t, []int{1}, woken(all), "there may be room for the next one")
	all[3].tell()
	require.Equal(t, []int{1, 3}, woken(all), "a move that is told of an end, and the first one")
	e.leave(all[1])
	require.Equal(t, []int{3}, woken(all))
	e.leave(all[3])
	e.leave(all[3])
	e.issued()
	require.Empty(t, woken(all), "none waits")
	require.Equal(t, moves{}, e.waiting)
}

// A noted is a Buffer that notes where it was read.
type noted struct {
	*stuck
	mu   sync.Mutex
	offs []int64
}

func (n *noted) ReadAt(p []byte, off int64) (int, error) {
	n.mu.Lock()
	n.offs = append(n.offs, off)
	n.mu.Unlock()
	return n.stuck.ReadAt(p, off)
}

// TestCallsOfAnExecutorBeginInOrder: all calls that wait for the one slot get it, those first that came first, and one whose
// context ends passes its turn on.
func TestCallsOfAnExecutorBeginInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plan{}
		p.patient()
		w := start(t, p)
		h, e := w.opens(), NewExecutor(w.portal(1))
		n := &noted{stuck: w.stall()}
		w.region.buf = n
		var calls sync.WaitGroup
		call := func(ctx context.Context, off int64, octets int) {
			calls.Go(func() {
				if n, err := e.ReadAt(ctx, h, make([]byte, octets), off); ctx.Err() == nil {
					assert.NoError(t, err)
					assert.Equal(t, octets, n)
				}
			})
			synctest.Wait()
		}
		cut, cancel := context.WithCancel(t.Context())
		most := int64(w.client.MaxOp())
		call(t.Context(), 0, int(3*most))
		call(cut, 2, 16)
		want := []int64{0, most}
		for i := int64(3); i < 50; i++ {
			call(t.Context(), i, 16)
			want = append(want, i)
		}
		n.wait()
		cancel()
		synctest.Wait()
		n.release()
		calls.Wait()
		require.Equal(t, append(want, 2*most), n.offs, "the first call waits for its second operation before the others come, and for its third one behind them")
		require.Equal(t, moves{}, e.waiting)
	})
}

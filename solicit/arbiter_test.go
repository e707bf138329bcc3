package solicit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// keep runs a window until it has granted a number of octets, with ten operations of each size waiting in their class. Operations
// end in the order in which they were granted.
func (w *windowed) keep(octets int64, sizes [classes]int64) (got [classes]int64) {
	waiting := [classes]int{}
	var running []uint64
	for got[Latency]+got[Bulk] < octets {
		for c, n := range sizes {
			for ; n > 0 && waiting[c] < 10; waiting[c]++ {
				w.enqueue(Class(c), n)
			}
		}
		g, ok := w.Next(w.now)
		if !ok {
			w.Release(w.now, running[0], Failed)
			running = running[1:]
			continue
		}
		waiting[g.Class]--
		got[g.Class] += g.N
		running = append(running, g.ID)
	}
	return got
}

func TestSOL_4_FIFOInsideAClass(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki})
	var want, got [classes][]uint64
	for i := range 100 {
		c := Class(i % 3 / 2)
		want[c] = append(want[c], w.enqueue(c, int64(1+i*7919%64)*ki))
	}
	for range 100 {
		g, ok := w.Next(w.now)
		require.True(t, ok)
		got[g.Class] = append(got[g.Class], g.ID)
		w.Release(w.now, g.ID, Failed)
	}
	require.Equal(t, want, got)
}

func TestSOL_5_ClassesShareTheWindow(t *testing.T) {
	for _, c := range []struct {
		weight [2]int
		sizes  [classes]int64
		want   float64
	}{
		{[2]int{}, [classes]int64{4 * ki, 4 * ki}, 4},
		{[2]int{}, [classes]int64{64, 256 * ki}, 4},
		{[2]int{}, [classes]int64{256 * ki, 64}, 4},
		{[2]int{}, [classes]int64{100 * ki, 999 * ki}, 4},
		{[2]int{}, [classes]int64{999 * ki, 100 * ki}, 4},
		{[2]int{1, 3}, [classes]int64{64 * ki, 48 * ki}, 1.0 / 3},
	} {
		t.Run(fmt.Sprint(c.weight, c.sizes), func(t *testing.T) {
			w := newWindowed(t, Config{Fixed: 1 << 20, Weight: c.weight})
			got := w.keep(10<<20, c.sizes)
			require.InEpsilon(t, c.want, float64(got[Latency])/float64(got[Bulk]), 0.1)
		})
	}
}

func TestSOL_5_OneAloneGetsAll(t *testing.T) {
	for _, strict := range []bool{false, true} {
		for c := range Class(classes) {
			w := newWindowed(t, Config{Fixed: 1 << 20, Strict: strict})
			var sizes [classes]int64
			sizes[c] = 100 * ki
			require.GreaterOrEqual(t, w.keep(10<<20, sizes)[c], int64(10<<20))
		}
	}
}

// TestSOL_5_IdleClassLosesItsDeficit: the unused part of its quantum is gone when it has no work.
func TestSOL_5_IdleClassLosesItsDeficit(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 1 << 20})
	for range 100 { // each leaves 63 KiB unused
		w.enqueue(Bulk, ki)
		ids := w.grants()
		require.Len(t, ids, 1)
		w.Release(w.now, ids[0], Failed)
	}
	require.Zero(t, w.arbiter.deficit[Bulk])
	got := w.keep(10<<20, [classes]int64{64 * ki, 64 * ki})
	require.InEpsilon(t, 4, float64(got[Latency])/float64(got[Bulk]), 0.1)
}

func TestSOL_6_StrictGrantsLatencyFirst(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 64 * ki, Strict: true})
	big := w.enqueue(Bulk, 48*ki)
	bulk := w.enqueue(Bulk, 32*ki)
	require.Equal(t, []uint64{big}, w.grants(), "the second one does not fit")
	first := w.enqueue(Latency, 16*ki)
	second := w.enqueue(Latency, 33*ki)
	require.Equal(t, []uint64{first}, w.grants(), "it takes the turn of the one that waits")
	w.Release(w.now, first, OK)
	require.Empty(t, w.grants())
	w.Release(w.now, big, OK)
	require.Equal(t, []uint64{second}, w.grants())
	w.Release(w.now, second, OK)
	require.Equal(t, []uint64{bulk}, w.grants())

	got := w.keep(10<<20, [classes]int64{16 * ki, 16 * ki})
	require.Zero(t, got[Bulk])
}

// TestSOL_7_ChosenHeadIsNotOvertaken: neither by smaller operations of its class nor by operations of the other
// class, however many arrive.
func TestSOL_7_ChosenHeadIsNotOvertaken(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 256 * ki})
	running := w.enqueue(Latency, 64*ki)
	require.Equal(t, []uint64{running}, w.grants())
	big := w.enqueue(Bulk, 256*ki)
	require.Empty(t, w.grants())
	for range 100 {
		w.enqueue(Latency, 64)
		w.enqueue(Bulk, 64)
		require.Empty(t, w.grants())
	}
	w.Release(w.now, running, OK)
	require.Equal(t, []uint64{big}, w.grants())
}

// TestSOL_7_TurnGoesOnWhenTheChosenHeadIsGone: a cancelled head gives its turn to the operations that wait.
func TestSOL_7_TurnGoesOnWhenTheChosenHeadIsGone(t *testing.T) {
	w := newWindowed(t, Config{Fixed: 256 * ki})
	running := w.enqueue(Latency, 64*ki)
	require.Equal(t, []uint64{running}, w.grants())
	big := w.enqueue(Bulk, 256*ki)
	require.Empty(t, w.grants())
	latency := w.enqueue(Latency, 64)
	require.True(t, w.Cancel(w.now, big))
	require.Zero(t, w.arbiter.deficit[Bulk], "nothing of its turn is left")
	require.Equal(t, []uint64{latency}, w.grants())
}

// TestSOL_5_RoundsArePassedOver: the largest operations do not take time for each of their rounds.
func TestSOL_5_RoundsArePassedOver(t *testing.T) {
	w := newWindowed(t, Config{Fixed: mostOctets, Weight: [2]int{1, 1}})
	for range 50_000 {
		ids := []uint64{w.enqueue(Latency, mostOctets), w.enqueue(Bulk, mostOctets-1)}
		for range ids {
			g, ok := w.Next(w.now)
			require.True(t, ok)
			w.Release(w.now, g.ID, Failed)
		}
	}
}

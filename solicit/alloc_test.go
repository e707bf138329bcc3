package solicit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// churn is the life of 64 operations in a window that grants 16 at a time.
func churn(tb testing.TB, w *Window, now time.Time, dst []uint64) {
	var ids [64]uint64
	for i := range ids {
		id, err := w.Enqueue(now, Class(i%2), 64<<10)
		if err != nil {
			tb.Fatal(err)
		}
		ids[i] = id
	}
	w.Cancel(now, ids[63])
	for range 20 {
		for g, ok := w.Next(now); ok; g, ok = w.Next(now) {
			w.Hold(now, g.ID)
			w.Release(now, g.ID, OK)
		}
	}
	w.Deadline()
	w.Expire(now.Add(time.Hour), dst[:0])
}

func TestSOL_16_NothingIsAllocated(t *testing.T) {
	for _, cfg := range []Config{{}, {Fixed: 1 << 20}, {Min: 64, Dispatch: [2]time.Duration{1, 1}}} {
		w, now, dst := New(cfg, epoch), epoch, make([]uint64, 0, 64)
		churn(t, w, now, dst)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			now = now.Add(2 * time.Hour)
			churn(t, w, now, dst)
		}))
		require.Len(t, w.table.entries, 1+64, "entries are used again")
	}
	var p Pacer
	now := epoch
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = now.Add(time.Millisecond)
		p.MayIssue(now, 0)
		p.Done(now, time.Millisecond, 3*time.Millisecond, OK)
	}))
}

// BenchmarkWindow measures an operation from Enqueue to Release, with 15 others granted and none that
// waits.
func BenchmarkWindow(b *testing.B) {
	now := time.Now()
	w := New(Config{Dispatch: [2]time.Duration{DispatchLatency, DispatchBulk}}, now)
	var running [16]uint64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Microsecond)
		if _, err := w.Enqueue(now, Class(i%2), 4<<10); err != nil {
			b.Fatal(err)
		}
		g, ok := w.Next(now)
		if !ok {
			b.Fatal("not granted")
		}
		if id := running[i%16]; id != 0 {
			w.Release(now, id, OK)
		}
		running[i%16] = g.ID
	}
}

// BenchmarkPacer measures one operation.
func BenchmarkPacer(b *testing.B) {
	var p Pacer
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		p.MayIssue(now, 0)
		p.Done(now, time.Microsecond, 100*time.Microsecond, OK)
	}
}

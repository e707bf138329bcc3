package backend

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestFake(t *testing.T, c FakeConfig) *Fake {
	t.Helper()
	if c.Size == 0 {
		c.Size = 1 << 20
	}
	f, err := NewFake(c)
	require.NoError(t, err)
	return f
}

// flushes starts n Flushes, and returns a channel that gets the time and the error of each end.
func flushes(b Backend, n int, since time.Time) chan outcome {
	ended := make(chan outcome, n)
	for range n {
		go func() {
			err := b.Flush(ctx)
			ended <- outcome{time.Since(since), err}
		}()
	}
	return ended
}

type outcome struct {
	after time.Duration
	err   error
}

func TestNVME_67_FlushesShareASyncThatBeginsAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{})
		f.Inject(Fault{Call: CallSync, Delay: time.Second})
		start := time.Now()
		require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, false))
		first := flushes(f, 1, start)
		time.Sleep(time.Second / 2)
		require.NoError(t, f.WriteAt(ctx, fill(4096, 2), 4096, false))
		others := flushes(f, 8, start)
		require.Equal(t, outcome{time.Second, nil}, <-first)
		for range 8 {
			require.Equal(t, outcome{2 * time.Second, nil}, <-others, "a sync that begins after the write")
		}
		require.Equal(t, 2, f.Count(CallSync), "one for all eight")
		require.NoError(t, f.Flush(ctx))
		require.Equal(t, 2, f.Count(CallSync), "nothing was written since")
	})
}

func TestNVME_67_AWriteUnderWayIsForTheNextSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{})
		f.Inject(Fault{Call: CallSync, Delay: time.Second})
		f.Inject(Fault{Call: CallWrite, Off: 4096, Len: 4096, Delay: time.Second / 2})
		require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, false))
		start := time.Now()
		first := flushes(f, 1, start)
		require.NoError(t, f.WriteAt(ctx, fill(4096, 2), 4096, false), "it ends while the sync runs")
		second := flushes(f, 1, start)
		require.Equal(t, outcome{time.Second, nil}, <-first)
		require.Equal(t, outcome{2 * time.Second, nil}, <-second)
		after, err := f.Crash(1, false)
		require.NoError(t, err)
		requireEqual(t, fill(4096, 2), mustRead(t, after, 4096, 4096), "durable by the second sync")
	})
}

func TestNVME_69_FailedSync(t *testing.T) {
	for what, errno := range map[string]error{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EINVAL": syscall.EINVAL, "ENOMEM": syscall.ENOMEM} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { failedSync(t, errno) })
		})
	}
}

func failedSync(t *testing.T, errno error) {
	f := newTestFake(t, FakeConfig{})
	f.Inject(Fault{Call: CallSync, Delay: time.Second, Times: 1, Err: errno})
	require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, false))
	start := time.Now()
	first := flushes(f, 1, start)
	time.Sleep(time.Second / 2)
	require.NoError(t, f.WriteAt(ctx, fill(4096, 2), 4096, false))
	waiting := flushes(f, 4, start)
	for _, ended := range []chan outcome{first, waiting, waiting, waiting, waiting} {
		o := <-ended
		require.ErrorIs(t, o.err, ErrSync, "all joined, and all that wait")
		require.ErrorIs(t, o.err, errno)
		require.Equal(t, time.Second, o.after)
	}
	requireFailed(t, f)
	require.Equal(t, 1, f.Count(CallSync), "a sync that failed is not repeated")
	require.NoError(t, f.Close())
}

// requireFailed checks a Backend after a sync has failed.
func requireFailed(t *testing.T, b Backend) {
	t.Helper()
	require.ErrorIs(t, b.Flush(ctx), ErrFailed)
	require.ErrorIs(t, b.WriteAt(ctx, fill(4096, 3), 0, false), ErrFailed)
	require.ErrorIs(t, b.WriteAt(ctx, fill(4096, 3), 0, true), ErrFailed)
	require.ErrorIs(t, b.WriteZeroes(ctx, 0, 4096, true, true), ErrFailed)
	require.ErrorIs(t, b.Trim(ctx, 0, 4096), ErrFailed)
	require.ErrorIs(t, b.Flush(ctx), ErrFailed, "it does not heal")
	require.NoError(t, b.ReadAt(ctx, make([]byte, 4096), 0), "reads are served")
	require.NotErrorIs(t, b.Flush(ctx), ErrSync, "an error has one kind")
}

func TestNVME_69_FailedSyncOfFUA(t *testing.T) {
	for what, c := range map[string]FakeConfig{"by one call": {}, "by a joined sync": {Plain: true}} {
		t.Run(what, func(t *testing.T) {
			f := newTestFake(t, c)
			f.Inject(Fault{Call: CallWriteD, Err: syscall.EIO})
			f.Inject(Fault{Call: CallSync, Err: syscall.EIO})
			err := f.WriteAt(ctx, fill(4096, 1), 0, true)
			require.ErrorIs(t, err, ErrSync)
			require.NotErrorIs(t, err, ErrWrite)
			requireFailed(t, f)
		})
	}
}

func TestNVME_69_FailedWriteIsNoFailedSync(t *testing.T) {
	for _, fua := range []bool{false, true} {
		f := newTestFake(t, FakeConfig{})
		require.NoError(t, f.WriteAt(ctx, fill(8192, 1), 0, false))
		f.Inject(Fault{Call: CallWrite, Len: 4096, Err: syscall.EIO})
		f.Inject(Fault{Call: CallWriteD, Len: 4096, Err: syscall.EIO})
		require.ErrorIs(t, f.WriteAt(ctx, fill(4096, 2), 0, fua), ErrWrite)
		require.NoError(t, f.WriteAt(ctx, fill(4096, 2), 4096, fua), "other blocks can be written")
		require.NoError(t, f.Flush(ctx), "and be flushed")
		after, err := f.Crash(1, false)
		require.NoError(t, err)
		requireEqual(t, fill(8192, 1)[:4096], mustRead(t, after, 0, 4096), "as before")
		requireEqual(t, fill(4096, 2), mustRead(t, after, 4096, 4096), "flushed")
	}
}

func TestNVME_65_FUA(t *testing.T) {
	for what, c := range map[string]FakeConfig{"one call": {}, "joined sync": {Plain: true}, "through": {Through: true}} {
		t.Run(what, func(t *testing.T) {
			f := newTestFake(t, c)
			require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, true))
			require.NoError(t, f.WriteZeroes(ctx, 4096, 4096, true, true))
			after, err := f.Crash(7, false)
			require.NoError(t, err)
			requireEqual(t, fill(4096, 1), mustRead(t, after, 0, 4096), "durable")
			want := map[string]int{"one call": 1, "joined sync": 2, "through": 0}[what]
			require.Equal(t, want, f.Count(CallSync))
			require.Equal(t, what == "one call", f.Count(CallWriteD) == 1)
		})
	}
}

// TestNVME_65_ManyFUAs: during one FUA write, others are made durable by a joint sync, which did not begin before them.
func TestNVME_65_ManyFUAs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{})
		f.Inject(Fault{Call: CallWriteD, Delay: time.Second})
		done := make(chan error)
		for i := range int64(8) {
			go func() { done <- f.WriteAt(ctx, fill(4096, byte(i)), i*4096, true) }()
		}
		for range 8 {
			require.NoError(t, <-done)
		}
		require.Equal(t, 1, f.Count(CallWriteD))
		require.LessOrEqual(t, f.Count(CallSync), 7)
		after, err := f.Crash(1, false)
		require.NoError(t, err)
		for i := range int64(8) {
			requireEqual(t, fill(4096, byte(i)), mustRead(t, after, i*4096, 4096), "durable")
		}
		require.NoError(t, f.m.close())
	})
}

func TestNVME_66_WithoutACacheEveryWriteIsDurable(t *testing.T) {
	f := newTestFake(t, FakeConfig{Through: true})
	require.False(t, f.Volatile())
	require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, false))
	require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 4096, false))
	require.NoError(t, f.Trim(ctx, 4096, 4096))
	require.NoError(t, f.Flush(ctx))
	require.Zero(t, f.Count(CallSync), "a Flush has nothing to do")
	after, err := f.Crash(1, false)
	require.NoError(t, err)
	requireEqual(t, fill(4096, 1), mustRead(t, after, 0, 4096), "durable")
	requireZeros(t, after, 4096, 4096, "durable")
}

func TestNVME_66_VolatileByKind(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		switch v := b.(type) {
		case *Memory:
			require.False(t, v.Volatile())
		case *Fake:
			require.Equal(t, !v.m.config.Through, v.Volatile())
		case *volume:
			require.Equal(t, !isThrough(v.medium), v.Volatile())
		}
	})
}

func TestNVME_68_FlushOfAllMakesAllDurable(t *testing.T) {
	f := newTestFake(t, FakeConfig{})
	for at := int64(0); at < f.Size(); at += 32 << 10 {
		require.NoError(t, f.WriteAt(ctx, fill(4096, byte(at>>15)), at, false))
	}
	require.NoError(t, f.Flush(ctx))
	after, err := f.Crash(3, false)
	require.NoError(t, err)
	for at := int64(0); at < f.Size(); at += 32 << 10 {
		requireEqual(t, fill(4096, byte(at>>15)), mustRead(t, after, at, 4096), "durable")
	}
}

func TestFlushWhoseContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{})
		f.Inject(Fault{Call: CallSync, Delay: time.Minute})
		require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, false))
		first := flushes(f, 1, time.Now())
		synctest.Wait()
		require.NoError(t, f.WriteAt(ctx, fill(4096, 1), 0, false))
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, f.Flush(short), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, (<-first).err)
		require.NoError(t, f.Flush(ctx), "nothing has failed")
	})
}

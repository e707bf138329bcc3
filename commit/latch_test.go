package commit

import (
	"context"
	"errors"
	"math"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
)

// An own is a user's own Flusher, which remembers nothing.
type own struct {
	disk
	asked []Range
}

func (o *own) Flush(_ context.Context, off, n int64) error {
	o.mu.Lock()
	o.asked = append(o.asked, Range{off, n})
	o.mu.Unlock()
	return o.sync(nil)
}

func (l *Latch) flush(off, n int64) error { return l.Flush(context.Background(), off, n) }

// put is a write that succeeds.
func (l *Latch) put(off, n int64) { l.Wrote(l.Began(), off, n, nil) }

func TestCMT_30_LatchRemembersWhatAFlushHasLost(t *testing.T) {
	var o own
	l := NewLatch(&o)
	l.put(0, 8)
	require.NoError(t, l.flush(0, 8))
	require.NoError(t, l.flush(0, 8), "a Flusher is asked each time")
	require.Len(t, o.asked, 2)
	l.put(8, 8)
	l.put(24, 8)
	o.fails(syscall.EIO)
	require.ErrorIs(t, l.flush(8, 16), syscall.EIO)
	o.fails(nil)
	for range 2 {
		err := l.flush(8, 8)
		require.ErrorIs(t, err, ErrDataLost, "that it would succeed now is no matter")
		require.ErrorIs(t, err, syscall.EIO)
	}
	require.ErrorIs(t, l.flush(16, 8), ErrDataLost, "those were not written, but they were asked for")
	require.ErrorIs(t, l.flush(31, 1), ErrDataLost, "nor is it known of what else was not yet durable")
	require.NoError(t, l.flush(0, 8), "what was durable still is")
	require.NoError(t, l.flush(32, 8))
	require.Len(t, o.asked, 5)

	l.put(8, 4)
	require.ErrorIs(t, l.flush(8, 8), ErrDataLost, "half of it is not enough")
	l.put(12, 4)
	o.fails(errors.New("busy"))
	require.EqualError(t, l.flush(8, 8), "busy")
	o.fails(nil)
	require.NoError(t, l.flush(8, 8), "which lost nothing")
	require.ErrorIs(t, l.flush(24, 1), ErrDataLost)
	require.Equal(t, Range{8, 8}, o.asked[len(o.asked)-1])
	o.fails(syscall.ENOSPC)
	l.put(8, 8)
	require.ErrorIs(t, l.flush(8, 8), syscall.ENOSPC)
	o.fails(nil)
	require.ErrorIs(t, l.flush(8, 8), syscall.ENOSPC, "what was written again is lost again")
	require.ErrorIs(t, l.flush(24, 8), ErrDataLost, "and what was lost before still is")
}

func TestCMT_30_LatchRemembersWritesThatFail(t *testing.T) {
	var o own
	l := NewLatch(&o)
	l.Wrote(l.Began(), 8, 8, syscall.EROFS)
	require.ErrorIs(t, l.flush(15, 1), ErrReadOnly)
	l.Wrote(l.Began(), 32, 8, errors.New("any"))
	require.ErrorIs(t, l.flush(32, 1), ErrDataLost)
	require.Empty(t, o.asked)
	l.put(8, 8)
	require.NoError(t, l.flush(8, 8))
}

// TestCMT_30_LatchOfManyPlaces: each is durable when it is written again, and stays so when a later Flush fails.
func TestCMT_30_LatchOfManyPlaces(t *testing.T) {
	const places = 5000
	var o own
	l := NewLatch(&o)
	l.put(0, 2*places*page)
	o.fails(syscall.EIO)
	require.Error(t, l.flush(0, 1))
	o.fails(nil)
	for i := range int64(places) {
		l.put(2*i*page, page)
		require.NoError(t, l.flush(2*i*page, page))
	}
	for i := range int64(places) {
		require.ErrorIs(t, l.flush((2*i+1)*page, 1), ErrDataLost)
	}
	for i := range int64(places) {
		l.put((2*i+1)*page, page)
	}
	require.NoError(t, l.flush(page, places*page))
	o.fails(syscall.EIO)
	require.Error(t, l.flush(0, 1))
	o.fails(nil)
	require.NoError(t, l.flush(page, places*page), "durable before")
	require.ErrorIs(t, l.flush((places+1)*page, page), ErrDataLost, "not durable before")
}

// TestCMT_13_WrittenWhileAFlushFails: the system may have dropped those octets with the others.
func TestCMT_13_WrittenWhileAFlushFails(t *testing.T) {
	var o own
	l := NewLatch(&o)
	began := l.Began()
	o.fails(syscall.EIO)
	require.Error(t, l.flush(0, 8))
	o.fails(nil)
	l.Wrote(began, 0, 8, nil)
	require.ErrorIs(t, l.flush(0, 8), ErrDataLost)
	l.put(0, 8)
	require.NoError(t, l.flush(0, 8), "later is soon enough")
}

// TestCMT_13_OneFailureForSeveralFlushes: a system reports it to one of two that sync at once.
func TestCMT_13_OneFailureForSeveralFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := own{disk: disk{takes: time.Second}}
		l := NewLatch(&o)
		l.put(0, 16)
		told := make(chan error, 2)
		go func() { told <- l.flush(0, 8) }()
		time.Sleep(time.Millisecond)
		go func() { told <- l.flush(8, 8) }()
		o.fails(syscall.EIO)
		require.ErrorIs(t, <-told, syscall.EIO)
		o.fails(nil)
		require.ErrorIs(t, <-told, ErrDataLost, "that its own has not failed is no matter")
	})
}

// TestCMT_13_16_SuccessOfAFlushDuringOneThatFails: the second has found nothing to do, because the first had
// begun to write all that was changed.
func TestCMT_13_16_SuccessOfAFlushDuringOneThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, succeeds := make(chan error), make(chan error, 1)
		close(succeeds)
		outcomes := make(chan chan error, 3)
		outcomes <- failed
		outcomes <- succeeds
		outcomes <- succeeds
		l := NewLatch(waits(outcomes))
		l.put(0, 24)
		var told [3]error
		flush := func(i int) {
			go func() { told[i] = l.flush(int64(8*i), 8) }()
			synctest.Wait()
		}
		flush(0)
		flush(1)
		failed <- syscall.EIO
		synctest.Wait()
		require.ErrorIs(t, told[0], syscall.EIO)
		require.ErrorIs(t, told[1], ErrDataLost, "it ended before the failure")
		l.put(16, 8)
		flush(2)
		require.NoError(t, told[2])
	})
}

// waits is a Flusher whose calls return what comes from the next channel.
type waits chan chan error

func (w waits) Flush(context.Context, int64, int64) error { return <-<-w }

// TestCMT_16_SuccessOfAFlushWaitsForThoseBeforeIt, until its context ends, and not for those that have begun since.
func TestCMT_16_SuccessOfAFlushWaitsForThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, succeeds := make(chan error), make(chan error), make(chan error)
		close(succeeds)
		outcomes := make(chan chan error, 4)
		for _, o := range []chan error{first, succeeds, succeeds, second} {
			outcomes <- o
		}
		l := NewLatch(waits(outcomes))
		ctx, cancel := context.WithCancel(t.Context())
		var told [4]error
		flush := func(i int, ctx context.Context) {
			told[i] = errRunning
			go func() { told[i] = l.Flush(ctx, int64(8*i), 8) }()
			synctest.Wait()
		}
		flush(0, t.Context())
		flush(1, t.Context())
		flush(2, ctx)
		require.Equal(t, errRunning, told[2])
		cancel()
		synctest.Wait()
		require.Equal(t, context.Canceled, told[2])
		require.Len(t, l.calls.waits, 1)
		flush(3, t.Context())
		require.Equal(t, errRunning, told[1])
		first <- nil
		synctest.Wait()
		require.NoError(t, told[1])
		require.Equal(t, errRunning, told[0], "the last one had begun when it ended")
		second <- nil
		synctest.Wait()
		require.Equal(t, [4]error{2: context.Canceled}, told)
		require.Empty(t, l.calls.waits)
	})
}

var errRunning = errors.New("it has not returned")

// panics is a Flusher that panics while it is true.
type panics bool

func (p *panics) Flush(context.Context, int64, int64) error {
	if *p {
		panic("by the program")
	}
	return nil
}

// TestFlusherThatPanics has lost its octets, and its caller learns why.
func TestFlusherThatPanics(t *testing.T) {
	var mined panics = true
	l := NewLatch(&mined)
	l.put(0, 8)
	err := l.flush(0, 8)
	require.ErrorIs(t, err, ErrDataLost)
	var p *stag.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, "Flush", p.Method)
	mined = false
	require.ErrorIs(t, l.flush(0, 8), ErrDataLost)
	require.NoError(t, l.flush(8, 8))
}

// TestCMT_16_FlusherThatEndsItsGoroutine has lost its octets, like one that panics, and holds up no other.
func TestCMT_16_FlusherThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leaves goexits = true
		l := NewLatch(&leaves)
		l.put(0, 8)
		go func() { _ = l.flush(0, 8) }()
		synctest.Wait()
		leaves = false
		require.ErrorIs(t, l.flush(0, 8), ErrDataLost)
		require.NoError(t, l.flush(8, 8))
	})
}

// TestCMT_30_SyncThatEndsItsGoroutine is no different, and another round can begin.
func TestCMT_30_SyncThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leaves goexits = true
		both := make(chan struct{})
		g, err := NewGroup(64, func() error {
			<-both
			return leaves.Flush(t.Context(), 0, 0)
		})
		require.NoError(t, err)
		g.Touched(0, 8)
		told := make(chan error, 2)
		go func() { told <- g.Flush(t.Context(), 0, 8) }()
		synctest.Wait()
		pending, err := g.flushThen(0, 8, func(err error) func() { return func() { told <- err } })
		require.NoError(t, err)
		require.True(t, pending)
		close(both)
		for range 2 {
			require.ErrorIs(t, <-told, ErrDataLost)
		}
		leaves = false
		require.ErrorIs(t, g.Flush(t.Context(), 0, 8), ErrDataLost)
		began := g.Began()
		g.Wrote(began, 0, 8, nil)
		require.NoError(t, g.Flush(t.Context(), 0, 8), "written again")
	})
}

// goexits is a Flusher that does not return while it is true.
type goexits bool

func (g *goexits) Flush(context.Context, int64, int64) error {
	if *g {
		runtime.Goexit()
	}
	return nil
}

// TestCMT_13_WhatIsWrittenDuringAFlushIsNotDurable: the next failure loses it, too.
func TestCMT_13_WhatIsWrittenDuringAFlushIsNotDurable(t *testing.T) {
	all := Range{0, 64}
	l := NewLatch(new(own))
	begin := func() int {
		epoch, err := l.begin(all)
		require.NoError(t, err)
		return epoch
	}
	loses := func() { require.Error(t, l.end(begin(), Range{100, 1}, syscall.EIO)) }
	lost := func(off int64) bool { return l.losses.told(Range{off, 8}) != nil }

	l.put(0, 48)
	first := begin()
	l.put(0, 8)
	second := begin()
	l.put(8, 8)
	require.NoError(t, l.end(first, all, nil))
	loses()
	require.True(t, lost(0), "written while it ran, before the second began")
	require.True(t, lost(8), "and after that")
	require.False(t, lost(16), "this is durable")
	require.ErrorIs(t, l.end(second, all, nil), ErrDataLost, "the second ends after the loss")

	l.put(0, 64)
	first = begin()
	l.put(0, 8)
	second = begin()
	third := begin()
	require.NoError(t, l.end(first, all, nil))
	loses()
	require.True(t, lost(0), "however many begin before it ends")
	require.ErrorIs(t, l.end(second, all, nil), ErrDataLost)
	require.ErrorIs(t, l.end(third, all, nil), ErrDataLost)

	l.put(0, 64)
	first = begin()
	second = begin()
	l.put(0, 8)
	third = begin()
	require.NoError(t, l.end(first, all, nil))
	fourth := begin()
	l.put(8, 8)
	require.NoError(t, l.end(second, all, nil))
	require.NoError(t, l.end(third, all, nil))
	l.put(16, 8)
	require.NoError(t, l.end(fourth, Range{0, 16}, nil))
	loses()
	require.True(t, lost(8), "written while the last ran")
	require.True(t, lost(16), "it was not asked for")
	require.False(t, lost(24))

	l.put(0, 64)
	require.NoError(t, l.end(begin(), all, nil))
	l.put(32, 8)
	require.NoError(t, l.end(begin(), all, nil))
	loses()
	for off := int64(0); off < 64; off += 8 {
		require.False(t, lost(off), "where no two run at once, all is known")
	}
}

func TestWhatNeedsALatch(t *testing.T) {
	b, err := NewBuffer(&syncing{})
	require.NoError(t, err)
	require.Nil(t, NewLatch(b), "a backing of the package needs none")
	require.NotNil(t, NewLatch(struct{ Flusher }{new(own)}))
}

func TestNothingIsAllocatedByALatch(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	var o quiet
	l := NewLatch(&o)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		l.put(8, 8)
		l.put(100, 8)
		_ = l.flush(0, 16)
	}))
}

type quiet struct{}

func (*quiet) Flush(context.Context, int64, int64) error { return nil }

// TestFlushOfMoreThanThereIs: it covers what was lost, as a Flush of just those octets does.
func TestFlushOfMoreThanThereIs(t *testing.T) {
	var fails error
	g, err := NewGroup(64<<10, func() error { return fails })
	require.NoError(t, err)
	o := new(own)
	l := NewLatch(o)
	ctx := context.Background()
	g.Touched(8<<10, 1)
	l.put(8<<10, 1)
	fails = syscall.EIO
	o.fails(syscall.EIO)
	for _, f := range []Flusher{g, l} {
		require.ErrorIs(t, f.Flush(ctx, 8<<10, 1), syscall.EIO)
	}
	fails = nil
	o.fails(nil)
	for _, f := range []Flusher{g, l} {
		require.ErrorIs(t, f.Flush(ctx, 1, math.MaxInt64), ErrDataLost)
		require.NoError(t, f.Flush(ctx, 16<<10, math.MaxInt64))
	}
}

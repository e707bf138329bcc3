package commit

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

const page = 4096

// A disk records its syncs and takes as long for each as the test says.
type disk struct {
	mu    sync.Mutex
	syncs [][]Range
	err   error
	takes time.Duration
}

func (d *disk) sync(ranges []Range) error {
	time.Sleep(d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs = append(d.syncs, append([]Range(nil), ranges...))
	return d.err
}

func (d *disk) fails(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func flush(g *group, off, n int64) error { return g.Flush(context.Background(), off, n) }

// touch is a write that succeeds.
func touch(g *group, off, n int64) { g.wrote(g.began(), off, n, nil) }

func TestOnlyWhatWasWrittenIsSynced(t *testing.T) {
	var d disk
	g := newGroup(64*page, false, d.sync)
	require.NoError(t, flush(g, 0, 64*page))
	require.Empty(t, d.syncs, "nothing was written")
	touch(g, page+7, 3)
	touch(g, 5*page-1, 2)
	touch(g, 20*page, 1)
	require.NoError(t, flush(g, 0, 10*page))
	require.Equal(t, [][]Range{{{page, page}, {4 * page, 2 * page}}}, d.syncs, "whole chunks, within what is asked for")
	require.NoError(t, flush(g, 0, 10*page))
	require.Len(t, d.syncs, 1, "and once")
	require.NoError(t, flush(g, 20*page+4000, 1))
	require.Equal(t, []Range{{20 * page, page}}, d.syncs[1], "the rest when it is asked for")
	require.NoError(t, flush(g, -5, 3), "what is outside of the backing")
	require.NoError(t, flush(g, 70*page, 3), "is nothing")
	require.EqualValues(t, 2, g.Syncs())
}

// A later is a caller of flushThen.
type later struct {
	g    *group
	told []error
}

func (l *later) flush(off, n int64) (pending bool, err error) {
	return l.g.flushThen(off, n, func(err error) func() {
		l.told = append(l.told, err)
		return nil
	})
}

func TestCMT_13_25_FlushThenDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second}
		g := newGroup(64*page, false, d.sync)
		first, second, third := later{g: g}, later{g: g}, later{g: g}
		start := time.Now()
		pending, err := first.flush(0, page)
		require.NoError(t, err)
		require.False(t, pending, "nothing was written")
		touch(g, 0, 1)
		pending, _ = first.flush(page, page)
		require.False(t, pending, "not there")
		pending, _ = first.flush(0, page)
		require.True(t, pending)
		synctest.Wait()
		require.Empty(t, first.told)
		pending, _ = second.flush(0, page)
		require.True(t, pending, "it is being synced")
		touch(g, page, 1)
		pending, _ = third.flush(page, 1)
		require.True(t, pending)
		require.Equal(t, start, time.Now(), "none of them has waited")
		require.NoError(t, flush(g, page, 1), "this one waits with the others")
		require.Equal(t, 2*time.Second, time.Since(start), "the second sync begins after the first")
		synctest.Wait()
		require.Equal(t, [][]error{{nil}, {nil}, {nil}}, [][]error{first.told, second.told, third.told}, "each is told once")
		require.EqualValues(t, 2, g.Syncs())
		g.close()
		_, err = first.flush(0, 1)
		require.ErrorIs(t, err, fs.ErrClosed)
	})
}

// TestCMT_13_25_FlushAfterAFlushThatWaits: the goroutine that runs the first round has others to
// do, and leaves the next to the group.
func TestCMT_13_25_FlushAfterAFlushThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second}
		g := newGroup(64*page, false, d.sync)
		l := later{g: g}
		touch(g, 0, 1)
		start := time.Now()
		go func() {
			time.Sleep(time.Millisecond)
			touch(g, page, 1)
			_, _ = l.flush(page, 1)
		}()
		require.NoError(t, flush(g, 0, 1))
		require.Equal(t, time.Second, time.Since(start))
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(g.close)
		}
		closing.Wait()
		require.Equal(t, []error{nil}, l.told)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestCMT_30_FlushThenIsToldOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second, err: syscall.EIO}
		g := newGroup(64*page, false, d.sync)
		first, second, third := later{g: g}, later{g: g}, later{g: g}
		touch(g, 0, 1)
		_, _ = first.flush(0, 1)
		synctest.Wait()
		touch(g, page, 1)
		_, _ = second.flush(page, 1)
		g.close()
		require.Equal(t, []error{syscall.EIO}, first.told)
		require.Equal(t, []error{syscall.EIO}, second.told, "its octets may have been dropped with the others")
		require.EqualValues(t, 1, g.Syncs(), "there is nothing to sync any more")
		g = newGroup(64*page, false, d.sync)
		g.wrote(g.began(), 0, 1, syscall.EIO)
		third.g = g
		pending, err := third.flush(0, 1)
		require.False(t, pending)
		require.ErrorIs(t, err, ErrDataLost)
	})
}

// TestCMT_13_TheFirstSyncBeginsBeforeItIsHandedOver, if it takes the system no time.
func TestCMT_13_TheFirstSyncBeginsBeforeItIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		g := newGroup(64*page, true, d.sync)
		l := later{g: g}
		var begun []Range
		g.begin = func(r Range) error {
			synctest.Wait()
			require.EqualValues(t, len(l.told), g.Syncs(), "no sync runs")
			begun = append(begun, r)
			return nil
		}
		for _, n := range []int64{beginMost, beginMost + 1} {
			touch(g, page, n)
			pending, _ := l.flush(page, n)
			require.True(t, pending)
			synctest.Wait()
		}
		require.Equal(t, []Range{{page, beginMost}}, begun, "for more the receiving goroutine does not wait")
		require.Equal(t, []error{nil, nil}, l.told)
	})
}

// TestCMT_13_CancelledFlushLeavesTheRoundToOthers: a Flush with a context, and one that does not wait at
// all, share a round.
func TestCMT_13_CancelledFlushLeavesTheRoundToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Hour}
		g := newGroup(64*page, false, d.sync)
		l := later{g: g}
		touch(g, 0, 1)
		go func() { _ = flush(g, 0, 1) }()
		synctest.Wait()
		touch(g, page, 1)
		_, _ = l.flush(page, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, g.Flush(ctx, page, 1), context.DeadlineExceeded)
		require.NoError(t, flush(g, page, 1))
		synctest.Wait()
		require.Equal(t, []error{nil}, l.told)
		require.EqualValues(t, 2, g.Syncs())
		touch(g, 0, 1)
		start := time.Now()
		require.NoError(t, flush(g, 0, 1))
		require.Equal(t, time.Hour, time.Since(start), "what the one that has left was told is no outcome of a later Flush")
	})
}

// TestFlushEndsWithItsContext, even a Flush that waits for no other.
func TestFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Hour}
		g := newGroup(64*page, false, d.sync)
		touch(g, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, g.Flush(ctx, 0, 1), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, flush(g, 0, 1), "the sync goes on")
		require.Equal(t, time.Hour, time.Since(start))
		require.EqualValues(t, 1, g.Syncs())
	})
}

func TestWholesaleSyncTakesAll(t *testing.T) {
	var d disk
	g := newGroup(64*page, true, d.sync)
	touch(g, 0, 1)
	touch(g, 9*page, 1)
	require.NoError(t, flush(g, 0, 1))
	require.NoError(t, flush(g, 9*page, 1))
	require.Len(t, d.syncs, 1, "one sync has made all of it durable")
}

func TestConcurrentCommitsShareASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second}
		g := newGroup(64*page, true, d.sync)
		start := time.Now()
		var all sync.WaitGroup
		for i := range int64(50) {
			all.Go(func() {
				touch(g, i*page, 1)
				require.NoError(t, flush(g, i*page, 1))
			})
		}
		all.Wait()
		require.LessOrEqual(t, g.Syncs(), uint64(2), "one that began at once, and one for all Flushes that came while it ran")
		require.LessOrEqual(t, time.Since(start), 2*time.Second)
	})
}

func TestCMT_13_FlushWaitsForASyncUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second}
		g := newGroup(64*page, true, d.sync)
		touch(g, 0, 1)
		go func() { _ = flush(g, 0, 1) }()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, flush(g, 0, 1), "nothing new was written, but it is not yet durable")
		require.Equal(t, time.Second, time.Since(start))
		require.EqualValues(t, 1, g.Syncs())
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Hour}
		g := newGroup(64*page, true, d.sync)
		touch(g, 0, 1)
		go func() { _ = flush(g, 0, 1) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		touch(g, page, 1)
		require.ErrorIs(t, g.Flush(ctx, page, 1), context.DeadlineExceeded)
		require.ErrorIs(t, g.Flush(ctx, page, 1), context.DeadlineExceeded, "also at the beginning")
		g.close()
		require.EqualValues(t, 2, g.Syncs(), "the next sync is for the Flush that was cancelled, and harmless")
		require.ErrorIs(t, flush(g, 0, 1), fs.ErrClosed)
	})
}

// TestCancelledFlushPassesTheSyncOn: the Flush that is to run the next sync may be cancelled
// just then.
func TestCancelledFlushPassesTheSyncOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			d := disk{takes: time.Second}
			g := newGroup(64*page, false, d.sync)
			touch(g, 0, 1)
			touch(g, page, 1)
			var all sync.WaitGroup
			all.Go(func() { require.NoError(t, flush(g, 0, 1)) })
			synctest.Wait()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			all.Go(func() { _ = g.Flush(ctx, page, 1) })
			synctest.Wait()
			all.Go(func() { require.NoError(t, flush(g, page, 1), "the other runs it") })
			all.Wait()
			cancel()
			require.EqualValues(t, 2, g.Syncs())
		}
	})
}

func TestFailedSyncIsTriedAgain(t *testing.T) {
	d := disk{err: syscall.ENOMEM}
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, 1)
	require.ErrorIs(t, flush(g, 0, 1), syscall.ENOMEM)
	d.fails(nil)
	require.NoError(t, flush(g, 0, 1))
	require.Len(t, d.syncs, 2, "what was not durable is synced again")
}

func TestUsersErrorHasItsStatus(t *testing.T) {
	b, err := NewBuffer(&syncing{err: &Error{Status: MakeStatus(0, ReadOnly), Err: errors.New("sealed")}})
	require.NoError(t, err)
	_, err = b.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	err = b.Flush(context.Background(), 0, 1)
	require.ErrorIs(t, err, ErrReadOnly)
	require.EqualError(t, err, "commit: read only (region 0): sealed")
	_, err = NewBuffer(&syncing{size: -1})
	require.Error(t, err)
}

type syncing struct {
	size        int64
	err, writes error
}

func (s *syncing) Size() int64                            { return s.size + 1 }
func (s *syncing) ReadAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (s *syncing) WriteAt(p []byte, _ int64) (int, error) { return len(p), s.writes }
func (s *syncing) Sync() error                            { return s.err }

// TestOnlyWhatIsWantedIsSynced: a sync omits what an earlier Flush has wanted, and the last chunk
// ends with the backing.
func TestOnlyWhatIsWantedIsSynced(t *testing.T) {
	var d disk
	g := newGroup(5*page+100, false, d.sync)
	for range 3 {
		touch(g, 0, 1)
		require.NoError(t, flush(g, 0, 1))
	}
	touch(g, 0, 1)
	touch(g, 5*page, 1)
	d.syncs = nil
	require.NoError(t, flush(g, 5*page, 1))
	require.Equal(t, [][]Range{{{5 * page, 100}}}, d.syncs)
}

// TestCloseWaitsForOutcomeCalls: a function that is called with an outcome may still use the
// backing.
func TestCloseWaitsForOutcomeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		g := newGroup(64*page, false, d.sync)
		hold, closed := make(chan struct{}), make(chan struct{})
		touch(g, 0, 1)
		pending, err := g.flushThen(0, 1, func(error) func() {
			<-hold
			return nil
		})
		require.NoError(t, err)
		require.True(t, pending)
		synctest.Wait()
		go func() {
			g.close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			require.Fail(t, "it has not waited")
		default:
		}
		close(hold)
		<-closed
	})
}

func TestFlushWithAContextThatIsOver(t *testing.T) {
	var d disk
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, g.Flush(ctx, 0, 1), context.Canceled)
	require.Empty(t, d.syncs, "it does not begin a sync")
	require.NoError(t, flush(g, 0, 1), "which is still to be done")
	require.Len(t, d.syncs, 1)
}

// TestCMT_13_RoundsAreUsedAgain: the remains of one must not be taken for the outcome of the next.
func TestCMT_13_RoundsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second}
		g := newGroup(64*page, false, d.sync)
		for i := range 4 {
			touch(g, 0, 1)
			start := time.Now()
			first := make(chan error, 1)
			go func() { first <- flush(g, 0, 1) }()
			synctest.Wait()
			touch(g, page, 1)
			require.NoError(t, flush(g, page, 1))
			require.NoError(t, <-first)
			require.Equal(t, 2*time.Second, time.Since(start), "time %d: one sync after the other", i)
			synctest.Wait()
		}
		require.EqualValues(t, 8, g.Syncs())
	})
}

func TestNothingIsAllocatedForASync(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	g := newGroup(64*page, false, func([]Range) error { return nil })
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		touch(g, 3*page, page)
		_ = flush(g, 3*page, page)
	}))
	told := make(chan struct{})
	answer := func() { told <- struct{}{} }
	then := func(error) func() { return answer }
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		touch(g, 3*page, page)
		_, _ = g.flushThen(3*page, page, then)
		<-told
	}))
}

// TestChunks compares the set of chunks with a plain one.
func TestChunks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		size := 1 + rnd.Int64N(300*page)
		c, into := newChunks(size), newChunks(size)
		plain := make([]bool, (size+page-1)/page)
		for range 20 {
			r := Range{rnd.Int64N(size), 1 + rnd.Int64N(20*page)}
			last := min(r.Off+r.Len, size) - 1
			switch rnd.IntN(3) {
			case 0, 1:
				c.add(r)
				for k := r.Off / page; k <= last/page; k++ {
					plain[k] = true
				}
			default:
				c.take(r, &into)
				for k := r.Off / page; k <= last/page; k++ {
					plain[k] = false
				}
			}
			r = Range{rnd.Int64N(size), 1 + rnd.Int64N(20*page)}
			want := false
			for k := r.Off / page; k <= (min(r.Off+r.Len, size)-1)/page; k++ {
				want = want || plain[k]
			}
			require.Equal(t, want, c.has(r))
		}
		var runs []bool
		for _, r := range c.runs(nil) {
			for int64(len(runs)) < r.Off/page {
				runs = append(runs, false)
			}
			for k := r.Off; k < r.Off+r.Len; k += page {
				runs = append(runs, true)
			}
		}
		for len(runs) < len(plain) {
			runs = append(runs, false)
		}
		require.Equal(t, plain, runs)
	}
}

func TestChunksOfALargeBackingAreLarger(t *testing.T) {
	c := newChunks(1 << 40)
	require.LessOrEqual(t, len(c.words)*64, maxChunks)
	c.add(Range{1<<40 - 1, 1})
	require.Equal(t, []Range{{1<<40 - 1<<22, 1 << 22}}, c.runs(nil))
}

// TestGroupIsToldOfMoreThanAnIntCounts on systems with 32 bits, too (GOARCH=386), for example of a hole that was
// punched into a file.
func TestGroupIsToldOfMoreThanAnIntCounts(t *testing.T) {
	const size = 1 << 32
	syncs := 0
	g, err := NewGroup(2*size, func() error { syncs++; return nil })
	require.NoError(t, err)
	g.Touched(0, size)
	require.NoError(t, g.Flush(t.Context(), size/2, 1))
	require.Equal(t, 1, syncs)
	g.Wrote(g.Began(), 0, size, nil)
	require.NoError(t, g.Flush(t.Context(), size/2, 1))
	require.Equal(t, 2, syncs)
	require.NoError(t, g.Close())
}

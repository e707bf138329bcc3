package commit

import (
	"context"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCMT_13_16_WriteThatBeginsWhileALossIsNoted is neither lost nor forgotten: the next Flush syncs it.
func TestCMT_13_16_WriteThatBeginsWhileALossIsNoted(t *testing.T) {
	var d disk
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, 1)
	g.mu.Lock() // as the round that has failed, whose settle is at its beginning
	g.losses.synced(syscall.EIO)
	written := make(chan struct{})
	go func() {
		defer close(written)
		g.wrote(g.began(), 5*page, 1, nil)
	}()
	require.Eventually(t, func() bool { return g.dirty.has(Range{5 * page, 1}) }, 10*time.Second, time.Millisecond)
	g.dirty.moveAll(&g.taken) // the rest of settle
	for _, r := range g.taken.runs(nil) {
		g.losses.octets.add(r)
	}
	g.taken.clear()
	g.mu.Unlock()
	<-written
	require.ErrorIs(t, flush(g, 0, 1), ErrDataLost)
	before := g.Syncs()
	require.NoError(t, flush(g, 5*page, 1))
	require.Equal(t, before+1, g.Syncs(), "it was written behind the sync that has failed")
}

// TestCMT_13_WhatASyncHasLostStaysLost: Linux drops pages that it could not write, and its
// next sync succeeds.
func TestCMT_13_WhatASyncHasLostStaysLost(t *testing.T) {
	d := disk{err: syscall.EIO}
	g := newGroup(64*page+100, false, d.sync)
	touch(g, 0, 1)
	touch(g, 5*page, 1)
	touch(g, 64*page, 1)
	require.ErrorIs(t, flush(g, 0, 1), syscall.EIO)
	d.fails(nil)
	require.ErrorIs(t, flush(g, 0, 1), ErrDataLost, "the disk says that all is well, and is not believed")
	require.ErrorIs(t, flush(g, 5*page, 1), ErrDataLost, "nor of what else was waiting to be written")
	require.NoError(t, flush(g, 9*page, 1), "what was durable still is")
	touch(g, 0, page-1)
	require.ErrorIs(t, flush(g, 0, page), ErrDataLost, "part of the page is not enough")
	require.NoError(t, flush(g, 0, page-1), "but for that part")
	touch(g, page-1, 1)
	require.NoError(t, flush(g, 0, page), "what is written again is as new")
	touch(g, 64*page, 100)
	require.NoError(t, flush(g, 64*page, 100), "also in the last chunk, which is shorter")
	g.wrote(g.began(), 7*page, page, syscall.ENOSPC)
	require.ErrorIs(t, flush(g, 7*page, 1), ErrDataLost, "nor is a write that has failed forgotten")
}

// TestCMT_13_WhatASyncHasLostWithAnyErrno: the error of a page that could not be written is the disk's, a bad sector
// or a broken path to it, or the server's. The system has dropped the page all the same.
func TestCMT_13_WhatASyncHasLostWithAnyErrno(t *testing.T) {
	const first = syscall.Errno(61) // of Linux: ENODATA, a bad sector
	d := disk{err: &os.PathError{Op: "sync", Path: "data", Err: first}}
	g := newGroup(64*page, false, d.sync)
	o := own{disk: disk{err: first}}
	l := NewLatch(&o)
	for what, x := range map[string]struct {
		flush func(off, n int64) error
		write func(off, n int64)
		fails func(error)
	}{
		"a backing":               {func(off, n int64) error { return flush(g, off, n) }, func(off, n int64) { touch(g, off, n) }, d.fails},
		"a Flusher of the user's": {l.flush, l.put, o.fails},
	} {
		x.write(0, 1)
		x.write(5*page, 1)
		err := x.flush(0, 1)
		require.ErrorIs(t, err, first, what)
		require.Equal(t, Vendor|Code(first), codeOf(err), what)
		x.fails(nil)
		err = x.flush(0, 1)
		require.ErrorIs(t, err, ErrDataLost, what)
		require.ErrorIs(t, err, first, what)
		require.ErrorIs(t, x.flush(5*page, 1), ErrDataLost, what)
		x.write(0, 1)
		require.NoError(t, x.flush(0, 1), what)
	}
}

// TestCMT_13_30_WrittenAgainAfterABeginHasFailed: a Flush of what was lost fails, also if other octets have been written
// there before the loss is reported. They are not durable, either.
func TestCMT_13_30_WrittenAgainAfterABeginHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *group
		g = newGroup(64*page, true, func([]Range) error {
			touch(g, page, 1) // behind what this sync takes
			return nil
		})
		l := later{g: g}
		g.begin = func(Range) error { return syscall.EIO }
		touch(g, page, 1)
		pending, err := l.flush(page, 1)
		require.NoError(t, err)
		require.True(t, pending)
		synctest.Wait()
		require.Len(t, l.told, 1)
		require.ErrorIs(t, l.told[0], syscall.EIO)
	})
}

// TestCMT_13_WriteOutsideOfTheBacking: no sync is known to cover it, and so no Flush of it succeeds.
func TestCMT_13_WriteOutsideOfTheBacking(t *testing.T) {
	for _, r := range []Range{{64 * page, 1}, {64*page - 1, 2}, {100 * page, page}} {
		var d disk
		g := newGroup(64*page, true, d.sync)
		touch(g, 0, 1)
		touch(g, r.Off, r.Len)
		require.ErrorIs(t, flush(g, r.Off, r.Len), ErrDataLost)
		require.NoError(t, flush(g, 0, page))
	}
	path := filepath.Join(t.TempDir(), "data")
	f, err := OpenFile(path, &FileOptions{Size: page})
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("some"), page)
	require.NoError(t, err)
	require.ErrorIs(t, f.Flush(t.Context(), page, 4), ErrDataLost)
	require.NoError(t, f.Close())
}

// TestCMT_13_LossesOfALargeBacking: its last chunk ends before 1<<63, not after it.
func TestCMT_13_LossesOfALargeBacking(t *testing.T) {
	for _, size := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 1<<46, 1 << 62} {
		d := disk{err: syscall.EIO}
		g := newGroup(size, true, d.sync)
		touch(g, size-8, 8)
		require.Error(t, flush(g, size-8, 8))
		require.Equal(t, size, d.syncs[0][0].end())
		d.fails(nil)
		require.ErrorIs(t, flush(g, size-8, 8), ErrDataLost, "%d octets", size)
	}
}

// TestCMT_13_WrittenWhileASyncFails: the system may have dropped the page after the write.
func TestCMT_13_WrittenWhileASyncFails(t *testing.T) {
	d := disk{err: syscall.EIO}
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, 1)
	began := g.began()
	require.ErrorIs(t, flush(g, 0, 1), syscall.EIO)
	d.fails(nil)
	g.wrote(began, page, page, nil)
	require.ErrorIs(t, flush(g, page, page), ErrDataLost)
	touch(g, page, page)
	require.NoError(t, flush(g, page, page), "later is soon enough")
}

func TestCMT_13_FailedWriteIsToldByTheNextFlush(t *testing.T) {
	b, err := NewBuffer(&syncing{size: page, writes: syscall.EROFS})
	require.NoError(t, err)
	_, err = b.WriteAt([]byte("lost"), 0)
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorIs(t, b.Flush(context.Background(), 0, 4), ErrReadOnly)
}

func TestCMT_30_WhatIsLostMayBeWrittenAgainInPieces(t *testing.T) {
	d := disk{err: syscall.EIO}
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, 2*page)
	require.Error(t, flush(g, 0, 1))
	d.fails(nil)
	touch(g, 0, 1400)
	touch(g, 1400, 1400)
	require.ErrorIs(t, flush(g, 0, page), ErrDataLost, "segments are shorter than a page")
	touch(g, 2800, 1400)
	require.NoError(t, flush(g, 0, page), "and all of them together are one")
	require.ErrorIs(t, flush(g, page, page), ErrDataLost)
	touch(g, page+1400, page-1400)
	require.ErrorIs(t, flush(g, page, page), ErrDataLost)
	touch(g, page, 1400)
	require.NoError(t, flush(g, page, page), "in any order")
}

// TestCMT_30_WhatWasWrittenAgainIsLostAgain: when another sync fails, nothing that was written
// after the first counts.
func TestCMT_30_WhatWasWrittenAgainIsLostAgain(t *testing.T) {
	d := disk{err: syscall.EIO}
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, page)
	require.ErrorIs(t, flush(g, 0, page), syscall.EIO)
	touch(g, 0, page/2)
	require.ErrorIs(t, flush(g, 0, page/2), syscall.EIO, "it is tried again, and fails again")
	d.fails(nil)
	touch(g, page/2, page/2)
	require.ErrorIs(t, flush(g, 0, page), ErrDataLost, "the first half is lost once more")
	require.NoError(t, flush(g, page/2, page/2))
	touch(g, 0, page/2)
	require.NoError(t, flush(g, 0, page))
}

// TestCMT_30_LossesOfASyncThatSucceedsLater: the next sync does not cover what a sync has lost.
func TestCMT_30_LossesOfASyncThatSucceedsLater(t *testing.T) {
	d := disk{err: syscall.EIO}
	g := newGroup(64*page, false, d.sync)
	touch(g, 0, page)
	touch(g, 9*page, page)
	require.ErrorIs(t, flush(g, 0, page), syscall.EIO)
	d.fails(nil)
	touch(g, 5*page, 1)
	require.NoError(t, flush(g, 5*page, 1))
	require.Equal(t, []Range{{5 * page, page}}, d.syncs[1], "only what was written since")
	touch(g, 0, page)
	require.NoError(t, flush(g, 0, page))
	require.ErrorIs(t, flush(g, 9*page, 1), ErrDataLost)
}

// TestCMT_30_WriteThatFails: an RDMA Write has no response, so the Commit reports the failure.
func TestCMT_30_WriteThatFails(t *testing.T) {
	var d disk
	g := newGroup(64*page, false, d.sync)
	fails := func(off, n int64, err error) { g.wrote(g.began(), off, n, err) }
	touch(g, 0, 1400)
	fails(1400, 1400, syscall.ENOSPC)
	touch(g, 2800, page-2800)
	err := flush(g, 0, page)
	require.ErrorIs(t, err, ErrDataLost, "a piece is missing")
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Empty(t, d.syncs, "nothing is called durable")
	touch(g, 0, page)
	require.NoError(t, flush(g, 0, page), "until it is there")
	fails(page, 8, syscall.EROFS)
	require.ErrorIs(t, flush(g, page, 8), ErrReadOnly, "trying again is in vain")
	require.NoError(t, flush(g, 0, page), "what is durable stays so")
}

func TestCMT_30_LossIsToldToAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disk{takes: time.Second, err: syscall.EIO}
		g := newGroup(64*page, false, d.sync)
		touch(g, 0, 1)
		errs := make(chan error, 2)
		go func() { errs <- flush(g, 0, 1) }()
		synctest.Wait()
		touch(g, page, 1)
		go func() { errs <- flush(g, page, 1) }()
		synctest.Wait()
		require.ErrorIs(t, <-errs, syscall.EIO)
		require.ErrorIs(t, <-errs, syscall.EIO, "its octets may have been dropped with the others")
		require.EqualValues(t, 1, g.Syncs())
	})
}

// A stingy buffer writes less than it is given, and does not say so.
type stingy struct{ syncing }

func (*stingy) WriteAt(p []byte, _ int64) (int, error) { return len(p) - 1, nil }

func TestCMT_30_BufferThatWritesLess(t *testing.T) {
	b, err := NewBuffer(&stingy{syncing{size: page}})
	require.NoError(t, err)
	n, err := b.WriteAt([]byte("most of it"), 0)
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Equal(t, 9, n)
	require.ErrorIs(t, b.Flush(context.Background(), 0, 10), ErrDataLost)
}

// A panicking buffer has written a part of what it was given.
type panicking struct{ counting }

func (p *panicking) WriteAt(b []byte, off int64) (int, error) {
	_, _ = p.counting.WriteAt(b[:1], off)
	panic("torn")
}

func TestCMT_30_BufferThatPanics(t *testing.T) {
	b, err := NewBuffer(new(panicking))
	require.NoError(t, err)
	require.PanicsWithValue(t, "torn", func() { _, _ = b.WriteAt([]byte("record"), 8) }, "the region that has called it ends the stream")
	require.ErrorIs(t, b.Flush(context.Background(), 8, 6), ErrDataLost, "that of another stream is told")
	require.NoError(t, b.Flush(context.Background(), 0, 8))
}

// TestCMT_30_WhatIsLostMayBeWrittenAgainInAnyOrder, in pages or in segments, each of which is durable at once: what is still
// lost is in many places then.
func TestCMT_30_WhatIsLostMayBeWrittenAgainInAnyOrder(t *testing.T) {
	const pages = 1 << 12
	for _, size := range []int64{pages * page, 1 << 40} { // of the second the chunks are larger
		for _, segment := range []int64{page, 1400} {
			d := disk{err: syscall.EIO}
			g := newGroup(size, true, d.sync)
			touch(g, 0, pages*page)
			require.Error(t, flush(g, 0, 1))
			d.fails(nil)
			for i := range uint16(pages) {
				off := int64(bits.Reverse16(i)>>4) * page
				for n := int64(0); n < page; n += segment {
					touch(g, off+n, min(segment, page-n))
				}
				require.NoError(t, flush(g, off, page), "page %d", off/page)
			}
			require.NoError(t, flush(g, 0, pages*page))
			require.False(t, g.losses.octets.has(everything))
		}
	}
}

// TestCMT_30_LossInManyPlaces does not affect what is between them.
func TestCMT_30_LossInManyPlaces(t *testing.T) {
	const places = 5000
	d := disk{err: syscall.EIO}
	g := newGroup(2*places*page, true, d.sync)
	for i := range int64(places) {
		touch(g, 2*i*page, page)
	}
	require.Error(t, flush(g, 0, 1))
	d.fails(nil)
	for i := range int64(places) {
		require.NoError(t, flush(g, (2*i+1)*page, page))
		require.ErrorIs(t, flush(g, 2*i*page+page-1, 1), ErrDataLost)
	}
	for i := int64(places - 1); i >= 0; i-- {
		touch(g, 2*i*page, page)
		require.NoError(t, flush(g, 2*i*page, page))
	}
}

// TestCMT_30_PagesThatStayWrittenInPart hold up no other: the next are durable when they are written again.
func TestCMT_30_PagesThatStayWrittenInPart(t *testing.T) {
	const pages = 6000
	d := disk{err: syscall.EIO}
	g := newGroup(pages*page, true, d.sync)
	touch(g, 0, pages*page)
	require.Error(t, flush(g, 0, 1))
	d.fails(nil)
	for i := int64(1); i < pages; i += 2 {
		touch(g, i*page+1400, 100)
	}
	again := func(off int64) error {
		touch(g, off, 1400)
		touch(g, off+1400, page-1400)
		return flush(g, off, page)
	}
	refused := 0
	for off := int64(0); off < pages*page; off += 2 * page {
		if again(off) != nil {
			refused++
			require.NoError(t, again(off), "page %d", off/page)
		}
	}
	require.LessOrEqual(t, refused, pages/(2*(maxExtents-keptExtents)), "as often as room is made")
}

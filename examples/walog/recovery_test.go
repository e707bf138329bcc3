package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// begun makes a writer that has found a log, and does nothing with it by itself.
func (c *cluster) begun() (w *writer, marks []mark) {
	w = newWriter(c.addrs, c.size)
	_, w.stop = context.WithCancel(c.ctx)
	require.NoError(c, w.register())
	marks, err := w.begin(c.ctx)
	require.NoError(c, err)
	return w, marks
}

// TestRecoveryThatEndsEarly: a writer that ends while it brings the targets to its log leaves what an earlier
// one has written.
func TestRecoveryThatEndsEarly(t *testing.T) {
	for lost := range 4 { // 3: none
		c := newClusterOf(t, start+4<<20)
		var records []string
		w := c.writer()
		for i := range 4 {
			record := strings.Repeat(string(rune('a'+i)), 700<<10)
			require.NoError(t, w.append(c.ctx, []byte(record)))
			records = append(records, record)
		}
		require.NoError(t, w.settle(c.ctx))
		require.NoError(t, w.close())

		w, marks := c.begun()
		var err error
		w.log, err = w.pd.RegisterMR(w.mem[:start+mostAtOnce+4096], 0, nil)
		require.NoError(t, err)
		for i, l := range w.links {
			require.ErrorIs(t, l.replicate(c.ctx, marks[i]), iwarp.ErrBounds, "it ends in the middle")
		}
		require.NoError(t, w.close())

		if lost < len(c.targets) {
			c.lose(lost)
		}
		w = c.writer()
		require.NoError(t, w.append(c.ctx, []byte("last")))
		if lost < len(c.targets) {
			c.start(lost)
		}
		require.NoError(t, w.settle(c.ctx))
		require.NoError(t, w.close())
		want := strings.Join(append(records, "last"), " ")
		for i := range c.targets {
			require.True(t, want == c.records(i), "target %d, after the loss of %d", i, lost)
		}
	}
}

// TestATermIsOneWriters: a writer that has reached a single target with its term ends. The next one,
// which does not see that target, has another term.
func TestATermIsOneWriters(t *testing.T) {
	c := newCluster(t)
	w := c.writer()
	require.NoError(t, w.append(c.ctx, []byte("one")))
	require.NoError(t, w.settle(c.ctx))
	require.NoError(t, w.close())

	c.lose(2)
	w, marks := c.begun()
	end, err := w.put([]byte("lost"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(c.ctx)
	w.tasks.Go(func() { _ = w.links[0].replicate(ctx, marks[0]) })
	require.NoError(t, w.when(c.ctx, func() bool { return w.links[0].acked == end }), "only the first has it")
	cancel()
	require.NoError(t, w.close())

	c.lose(0)
	c.start(2)
	w = c.writer()
	require.NoError(t, w.append(c.ctx, []byte("two")))
	c.start(0)
	require.NoError(t, w.settle(c.ctx))
	require.NoError(t, w.close())
	for i := range c.targets {
		require.Equal(t, "one two", c.records(i), "target %d", i)
	}
}

// A disk is a file whose syncs may fail: they drop what was written, as those of a system do.
type disk struct {
	mu              sync.Mutex
	cached, durable []byte
	dirty           []commit.Range
	fails           func() error // asked by a sync that follows a write of the mark
}

func (d *disk) Size() int64 { return int64(len(d.cached)) }

func (d *disk) Atomic() bool { return true }

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return copy(p, d.cached[off:]), nil
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dirty = append(d.dirty, commit.Range{Off: off, Len: int64(len(p))})
	return copy(d.cached[off:], p), nil
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dirty := d.dirty
	d.dirty = nil
	for _, r := range dirty {
		if r.Off == 0 {
			if err := d.fails(); err != nil {
				return err
			}
		}
	}
	for _, r := range dirty {
		copy(d.durable[r.Off:], d.cached[r.Off:r.Off+r.Len])
	}
	return nil
}

// TestMarkThatIsNotDurable: a writer that connects again after a failed sync of the mark does not take the mark that
// it reads for a durable one.
func TestMarkThatIsNotDurable(t *testing.T) {
	ctx := testContext(t)
	d := &disk{cached: make([]byte, start+4096), durable: make([]byte, start+4096), fails: func() error { return nil }}
	target := new(target)
	defer target.close()
	var err error
	target.rnic, err = iwarp.Open(nil)
	require.NoError(t, err)
	target.pd, err = target.rnic.AllocPD()
	require.NoError(t, err)
	file, err := commit.NewBuffer(d)
	require.NoError(t, err)
	target.mr, err = target.pd.RegisterBuffer(file, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{Durable: file})
	require.NoError(t, err)
	target.l, err = target.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	go func() { _ = target.accept(ctx) }()

	w, err := openWriter(ctx, []string{target.l.Addr().String()}, start+4096)
	require.NoError(t, err)
	require.NoError(t, w.append(ctx, []byte("one")))
	var once sync.Once
	d.mu.Lock()
	d.fails = func() (err error) {
		once.Do(func() { err = syscall.EIO })
		return err
	}
	d.mu.Unlock()
	require.NoError(t, w.append(ctx, []byte("two")), "the second attempt succeeds")
	d.mu.Lock()
	crashed := bytes.Clone(d.durable)
	d.mu.Unlock()
	require.Equal(t, w.end, markOf(binary.LittleEndian.Uint64(crashed)).tail, "of the file as a crash would leave it")
	require.NoError(t, w.close())
}

// TestWhatIsWrittenAtOnceEndsWithARecord: a mark within a record would be one of a log that is damaged.
func TestWhatIsWrittenAtOnceEndsWithARecord(t *testing.T) {
	w := newWriter(nil, start+4<<20)
	var ends []uint64
	for _, n := range []int{700 << 10, 1 << 20, 300 << 10, 300 << 10} {
		end, err := w.put(make([]byte, n))
		require.NoError(t, err)
		ends = append(ends, end)
	}
	tail := uint64(start)
	for _, want := range []uint64{ends[0], ends[1], ends[3]} { // the second is longer than what is written at once
		end, err := w.next(t.Context(), tail)
		require.NoError(t, err)
		require.Equal(t, want, end)
		tail = end
	}
}

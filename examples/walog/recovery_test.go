package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
)

// begun makes a writer that has found the log, and does nothing more by itself.
func (c *cluster) begun() (w *writer, marks []mark) {
	w = newWriter(c.addrs, c.size)
	_, w.stop = context.WithCancel(c.ctx)
	require.NoError(c, w.register())
	marks, err := w.begin(c.ctx)
	require.NoError(c, err)
	return w, marks
}

// TestRecoveryThatEndsEarly: if a writer ends while it brings the targets to its log, the records of earlier writers
// stay.
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

// TestATermIsOneWriters: a writer ends after only one target has its term. The next writer, which does not see that
// target, has another term.
func TestATermIsOneWriters(t *testing.T) {
	c := newCluster(t)
	c.holdsOne()

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

// flip changes a bit of a target's file.
func (c *cluster) flip(i int, off int64, bit byte) {
	f, err := os.OpenFile(c.paths[i], os.O_RDWR, 0)
	require.NoError(c, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	require.NoError(c, err)
	_, err = f.WriteAt([]byte{b[0] ^ bit}, off)
	require.NoError(c, err)
	require.NoError(c, f.Close())
}

// TestMarkWithATermThatWasNotNoted: the mark is damaged, and does not win against marks with more records. Every attempt
// of a writer is refused, until the target has a new file.
func TestMarkWithATermThatWasNotNoted(t *testing.T) {
	c := newCluster(t)
	c.holdsTwo()
	c.flip(2, markAt+6, 1<<1) // of the mark's term
	c.start(2)
	for range 3 {
		_, err := openWriter(c.ctx, c.addrs, c.size)
		require.ErrorContains(t, err, c.addrs[2]+": the mark has term 3, and 1 is the last one that was noted")
	}
	require.Equal(t, "one two", c.records(0))

	c.lose(2)
	require.NoError(t, os.Remove(c.paths[2]))
	c.start(2)
	w := c.writer()
	require.NoError(t, w.append(c.ctx, []byte("three")))
	require.NoError(t, w.settle(c.ctx))
	require.NoError(t, w.close())
	for i := range c.targets {
		require.Equal(t, "one two three", c.records(i), "target %d", i)
	}
}

// TestTargetsThatCameLater: they have noted the term of their marks, so that a writer needs none of the targets that its
// predecessor began with.
func TestTargetsThatCameLater(t *testing.T) {
	c := newCluster(t)
	c.lose(2)
	w := c.writer()
	require.NoError(t, w.append(c.ctx, []byte("one")))
	c.start(2)
	require.NoError(t, w.settle(c.ctx))
	c.lose(0)
	require.NoError(t, os.Remove(c.paths[0]))
	c.start(0)
	require.NoError(t, w.append(c.ctx, []byte("two")))
	require.NoError(t, w.settle(c.ctx))
	require.NoError(t, w.close())
	c.lose(1)
	w = c.writer()
	require.NoError(t, w.append(c.ctx, []byte("three")))
	require.NoError(t, w.close())
	for _, i := range []int{0, 2} {
		require.Equal(t, "one two three", c.records(i), "target %d", i)
	}
}

// TestDamagedRecord: another target with the same mark has the record, and the damaged target gets it again.
func TestDamagedRecord(t *testing.T) {
	for damaged := range 2 {
		c := newCluster(t)
		c.holdsTwo()
		c.start(2)
		c.flip(damaged, start+recordHead, 1)
		w := c.writer()
		require.NoError(t, w.append(c.ctx, []byte("three")))
		require.NoError(t, w.settle(c.ctx))
		require.NoError(t, w.close())
		for i := range c.targets {
			require.Equal(t, "one two three", c.records(i), "target %d, where %d was damaged", i, damaged)
		}
		c.flip(0, start+recordHead, 1)
		c.flip(1, start+recordHead, 1)
		c.flip(2, start+recordHead, 1)
		_, err := openWriter(c.ctx, c.addrs, c.size)
		require.ErrorContains(t, err, "record 0 is damaged")
	}
}

// A proxy forwards to a target, and can hold back what a writer sends.
type proxy struct {
	*testing.T
	l    net.Listener
	mu   sync.Mutex
	kept *bytes.Buffer // nil: everything is forwarded
	to   net.Conn
}

func newProxy(t *testing.T, addr string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	to, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	p := &proxy{T: t, l: l, to: to}
	t.Cleanup(func() { _, _ = l.Close(), to.Close() })
	go p.forward()
	return p
}

// forward serves one connection.
func (p *proxy) forward() {
	from, err := p.l.Accept()
	if err != nil {
		return
	}
	defer from.Close()
	go func() { _, _ = io.Copy(from, p.to) }()
	_, _ = io.Copy(p, from)
}

func (p *proxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept != nil {
		return p.kept.Write(b)
	}
	return p.to.Write(b)
}

func (p *proxy) keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = new(bytes.Buffer)
}

// keeps waits until the octets held back contain these.
func (p *proxy) keeps(octets string) {
	require.Eventually(p, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return bytes.Contains(p.kept.Bytes(), []byte(octets))
	}, 10*time.Second, time.Millisecond)
}

// release sends what was held back, and waits until the target has ended the connection.
func (p *proxy) release() {
	_, _ = p.to.Write(p.kept.Bytes()) // the target may have ended it before
	_ = p.to.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, p.to)
}

// TestWriterThatHasEndedIsNotHeardAnyMore: the writer's last octets arrive after another writer has begun. They contain
// a mark of the previous term.
func TestWriterThatHasEndedIsNotHeardAnyMore(t *testing.T) {
	c := newCluster(t)
	p := newProxy(t, c.addrs[0])
	w, err := openWriter(c.ctx, []string{p.l.Addr().String(), c.addrs[1], c.addrs[2]}, c.size)
	require.NoError(t, err)
	require.NoError(t, w.append(c.ctx, []byte("one")))
	require.NoError(t, w.settle(c.ctx))
	c.lose(1)
	c.lose(2)
	p.keep()
	_, err = w.put([]byte("lost"))
	require.NoError(t, err)
	p.keeps("\x41\x4c") // a Commit
	require.NoError(t, w.close())

	c.start(1)
	c.start(2)
	w = c.writer()
	require.NoError(t, w.append(c.ctx, []byte("two")))
	require.NoError(t, w.settle(c.ctx))
	p.release()
	require.NoError(t, w.close())
	for i := range c.targets {
		c.lose(i)
		require.Equal(t, "one two", c.records(i), "target %d", i)
	}
}

// A disk is a file whose syncs may fail. A failed sync drops what was written, as a system's does.
type disk struct {
	mu              sync.Mutex
	cached, durable []byte
	dirty           []commit.Range
	fails           func() error // called by a sync that follows a write of the mark
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

// A diskFile makes a disk the file of a target.
type diskFile struct{ *commit.Buffer }

func (diskFile) Close() error { return nil }

// startOn starts a target again, with a disk instead of its file.
func (c *cluster) startOn(i int, d commit.SyncBuffer) {
	file, err := commit.NewBuffer(d)
	require.NoError(c, err)
	c.targets[i] = &target{file: diskFile{file}}
	require.NoError(c, c.targets[i].listen(c.ctx, c.addrs[i]))
	go func() { _ = c.targets[i].accept(c.ctx) }()
}

// TestMarkThatIsNotDurable: a writer that connects again after a failed sync of the mark reads that mark, and does not
// take it for durable.
func TestMarkThatIsNotDurable(t *testing.T) {
	ctx := testContext(t)
	d := &disk{cached: make([]byte, start+4096), durable: make([]byte, start+4096), fails: func() error { return nil }}
	file, err := commit.NewBuffer(d)
	require.NoError(t, err)
	target := &target{file: diskFile{file}}
	defer target.close()
	require.NoError(t, target.listen(ctx, "127.0.0.1:0"))
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

// A stuck disk does not end its syncs before the test.
type stuck struct {
	*disk
	over chan struct{}
}

func (s stuck) Sync() error {
	<-s.over
	return nil
}

// TestRecoveryWithATargetWhoseDiskIsStuck: the target counts as lost, although it answers everything else.
func TestRecoveryWithATargetWhoseDiskIsStuck(t *testing.T) {
	c := newCluster(t)
	c.lose(0)
	d := stuck{&disk{cached: make([]byte, c.size)}, make(chan struct{})}
	c.startOn(0, d)
	defer close(d.over)
	w := c.writer()
	require.NoError(t, w.append(c.ctx, []byte("one")))
	require.NoError(t, w.close())
	require.Equal(t, "one", c.records(1))
	require.Equal(t, "one", c.records(2))
}

// An unreadable disk reads no records before the test ends.
type unreadable struct {
	*disk
	asked, over chan struct{}
}

func (d unreadable) ReadAt(p []byte, off int64) (int, error) {
	if off >= start {
		select {
		case d.asked <- struct{}{}:
		default:
		}
		<-d.over
	}
	return d.disk.ReadAt(p, off)
}

// TestLinksDoNotWaitForEachOther: a target that does not answer while its log is compared counts as lost.
func TestLinksDoNotWaitForEachOther(t *testing.T) {
	c := newCluster(t)
	c.holdsOne()
	c.lose(2)
	b, err := os.ReadFile(c.paths[2])
	require.NoError(t, err)
	none := func() error { return nil }
	d := unreadable{&disk{cached: b, durable: bytes.Clone(b), fails: none}, make(chan struct{}, 1), make(chan struct{})}
	c.startOn(2, d)
	defer close(d.over)

	w, marks := c.begun()
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	w.tasks.Go(func() { _ = w.links[2].replicate(ctx, marks[2]) })
	<-d.asked
	for i := range 2 {
		w.tasks.Go(func() { _ = w.links[i].replicate(ctx, marks[i]) })
	}
	require.NoError(t, w.append(ctx, []byte("two")))
	cancel()
	require.NoError(t, w.close())
}

// TestWhatIsWrittenAtOnceEndsWithARecord: a mark within a record would mean a damaged log.
func TestWhatIsWrittenAtOnceEndsWithARecord(t *testing.T) {
	w := newWriter(nil, start+4<<20)
	var ends []uint64
	for _, n := range []int{700 << 10, 1 << 20, 300 << 10, 300 << 10} {
		end, err := w.put(make([]byte, n))
		require.NoError(t, err)
		ends = append(ends, end)
	}
	tail := uint64(start)
	for _, want := range []uint64{ends[0], ends[1], ends[3]} { // the second record is longer than what is written at once
		end, err := w.next(t.Context(), tail)
		require.NoError(t, err)
		require.Equal(t, want, end)
		tail = end
	}
}

// TestTargetThatCannotServeAWriter: the writer gets an error instead of waiting.
func TestTargetThatCannotServeAWriter(t *testing.T) {
	ctx := testContext(t)
	d := &disk{cached: make([]byte, start+4096), durable: make([]byte, start+4096)}
	b, err := commit.NewBuffer(d)
	require.NoError(t, err)
	s := &target{file: diskFile{b}}
	require.NoError(t, s.listen(ctx, "127.0.0.1:0"))
	defer s.close()
	for err == nil { // until the RNIC has no PD left
		_, err = s.rnic.AllocPD()
	}
	go func() { _ = s.accept(ctx) }()

	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer func() { _ = rnic.Close() }()
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	waits, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err = rnic.Dial(waits, "tcp", s.l.Addr().String(), &iwarp.QPConfig{PD: pd})
	require.ErrorIs(t, err, iwarp.ErrRejected)
}

package backend

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// whole reports an error unless all octets of p are the same: every write of these tests writes one octet many times.
func whole(p []byte) error {
	for i := range p {
		if p[i] != p[0] {
			return fmt.Errorf("octet %d is %#x and octet 0 is %#x", i, p[i], p[0])
		}
	}
	return nil
}

// TestNVME_62_NoTornBlock: writers and readers of the same blocks, at the same time.
func TestNVME_62_NoTornBlock(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		bs := int64(b.BlockSize())
		// These are two blocks in two stripes of a memory: an operation on both need not be atomic.
		at := 64<<10 - bs
		var all sync.WaitGroup
		failed := make(chan error, 16)
		run := func(f func(i int) error) {
			all.Go(func() {
				for i := range 100 {
					if err := f(i); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		for w := range 8 {
			run(func(i int) error {
				p := make([]byte, 2*bs)
				for k := range p {
					p[k] = byte(8*i + w + 1)
				}
				switch i % 16 {
				case 7:
					return b.WriteZeroes(ctx, at, 2*bs, w%2 == 0, false)
				case 11:
					return b.Trim(ctx, at, 2*bs)
				}
				return b.WriteAt(ctx, p, at, i%32 == 3)
			})
			p := make([]byte, 2*bs)
			run(func(int) error {
				if err := b.ReadAt(ctx, p, at); err != nil {
					return err
				}
				if err := whole(p[:bs]); err != nil {
					return err
				}
				return whole(p[bs:])
			})
		}
		all.Wait()
		close(failed)
		require.NoError(t, <-failed)
		p := mustRead(t, b, at, 2*bs)
		require.NoError(t, whole(p[:bs]))
		require.NoError(t, whole(p[bs:]))
	})
}

// TestNVME_62_OverlappingOperationsWait: the medium never gets a write of a block together with another operation on it.
// Other operations go on.
func TestNVME_62_OverlappingOperationsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{})
		f.Inject(Fault{Call: CallWrite, Delay: time.Second})
		start := time.Now()
		done := make(chan outcome, 5)
		begin := func(op func() error) {
			go func() {
				err := op()
				done <- outcome{time.Since(start), err}
			}()
			synctest.Wait()
		}
		read := func(off, n int64) func() error {
			return func() error { return f.ReadAt(ctx, make([]byte, n), off) }
		}
		begin(func() error { return f.WriteAt(ctx, fill(8192, 1), 4096, false) })
		begin(read(0, 4096))
		require.Equal(t, outcome{0, nil}, <-done, "ahead of the write")
		begin(read(12288, 4096))
		require.Equal(t, outcome{0, nil}, <-done, "behind it")
		begin(read(8192, 8192))
		begin(read(0, 8192))
		begin(func() error { return f.Trim(ctx, 8192, 4096) })
		begin(read(8192, 4096))
		for range 5 {
			require.Equal(t, outcome{time.Second, nil}, <-done, "when the write has ended")
		}
		var order []Call
		for _, r := range f.Records()[3:] {
			order = append(order, r.Call)
		}
		require.ElementsMatch(t, []Call{CallRead, CallRead, CallPunch, CallRead}, order)
	})
}

// TestNVME_62_AWriterIsNotStarved: a write waits for the reads that came before it, but not for later reads.
func TestNVME_62_AWriterIsNotStarved(t *testing.T) {
	var l rangeLock
	l.changed.L = &l.mu
	synctest.Test(t, func(t *testing.T) {
		first := l.lock(0, 8, false)
		second := l.lock(4, 8, false)
		wrote, read := make(chan uint64, 1), make(chan uint64, 1)
		go func() { wrote <- l.lock(4, 4, true) }()
		synctest.Wait()
		go func() { read <- l.lock(0, 8, false) }()
		synctest.Wait()
		l.unlock(second)
		synctest.Wait()
		require.Empty(t, wrote, "the first read has it")
		require.Empty(t, read, "the write is ahead")
		l.unlock(first)
		w := <-wrote
		synctest.Wait()
		require.Empty(t, read)
		l.unlock(w)
		l.unlock(<-read)
		require.Empty(t, l.asked)
		require.Zero(t, l.waiting)
	})
}

// TestNVME_70_LargeRangesTakeTurns: a read of the same octets comes between the parts of a
// Write Zeroes.
func TestNVME_70_LargeRangesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFake(t, FakeConfig{Size: 8 << 20, Plain: true})
		f.Inject(Fault{Call: CallWrite, Delay: time.Second})
		done := make(chan error)
		go func() { done <- f.WriteZeroes(ctx, 0, f.Size(), false, false) }()
		time.Sleep(time.Second / 2)
		start := time.Now()
		require.NoError(t, f.ReadAt(ctx, make([]byte, 4096), 0))
		require.Equal(t, time.Second/2, time.Since(start), "when the first part is done")
		require.NoError(t, <-done)
		for _, r := range f.Records() {
			require.LessOrEqual(t, r.Len, int64(1<<20))
		}
		require.Equal(t, 8, f.Count(CallWrite))
	})
}

// TestNVME_94_NoAllocation: in the steady state, reads and writes allocate nothing.
func TestNVME_94_NoAllocation(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		if _, fake := b.(*Fake); fake {
			t.Skip("a fake records and keeps everything")
		}
		p := make([]byte, 4096)
		for _, fua := range []bool{false, true} {
			require.NoError(t, b.WriteAt(ctx, p, 0, fua))
			require.Zero(t, testing.AllocsPerRun(20, func() { _ = b.WriteAt(ctx, p, 4096, fua) }), "writes, FUA: %v", fua)
		}
		require.Zero(t, testing.AllocsPerRun(50, func() { _ = b.ReadAt(ctx, p, 4096) }), "reads")
		require.Zero(t, testing.AllocsPerRun(20, func() { _ = b.Flush(ctx) }), "flushes")
	})
}

// TestNVME_62_MemoryIsCopiedUnderItsLock: a test with many operations would find a torn block of memory only by luck, so
// this test holds the lock itself.
func TestNVME_62_MemoryIsCopiedUnderItsLock(t *testing.T) {
	m, err := NewMemory(MemoryConfig{Size: 2 << 20})
	require.NoError(t, err)
	p := make([]byte, 8192)
	at := int64(1<<20 + 64<<10 - 4096)
	for what, op := range map[string]func() error{
		"read":  func() error { return m.ReadAt(ctx, p, at) },
		"write": func() error { return m.WriteAt(ctx, p, at, false) },
		"zeros": func() error { return m.WriteZeroes(ctx, at, 8192, false, false) },
		"trim":  func() error { return m.Trim(ctx, 1<<20, 1<<20) },
	} {
		for _, off := range []int64{at, at + 4096} {
			require.NoError(t, m.WriteAt(ctx, p, at, false))
			done := make(chan error, 1)
			m.lockOf(off).Lock()
			go func() { done <- op() }()
			select {
			case err := <-done:
				require.Fail(t, what, "it has not waited for the lock of the octets at %d: %v", off, err)
			case <-time.After(5 * time.Millisecond):
			}
			m.lockOf(off).Unlock()
			require.NoError(t, <-done)
		}
	}
}

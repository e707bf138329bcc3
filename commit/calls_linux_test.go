package commit

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/sysfail"
)

// TestCMT_13_CallsOfACommit: what a Commit asks of the system, and nothing else.
func TestCMT_13_CallsOfACommit(t *testing.T) {
	synced := []string{"fdatasync data", "fstatfs data", "stat data"}
	for what, x := range map[string]struct {
		one, several, hole []string
	}{
		"file":    {synced, synced, synced},
		"direct":  {synced, synced, synced},
		"mapping": {[]string{"msync 4096+4096", "fstatfs data", "stat data"}, synced, []string{"msync 32768+8192", "fstatfs data", "stat data"}},
		"persistent memory": {
			[]string{"write back 4096+4096", "fence", "stat data"},
			[]string{"write back 4096+4096", "write back 32768+4096", "write back 49152+4096", "fence", "stat data"},
			[]string{"write back 32768+8192", "fence", "stat data"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, path := record(t)
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			require.NoError(t, os.Truncate(path, octets)) // one hole
			b, err := opens[what].open(r, path, 0)
			require.NoError(t, err)
			ctx := context.Background()
			write := func(off int64, n int) {
				_, err := b.WriteAt(make([]byte, n), off)
				require.NoError(t, err)
			}
			r.took()
			require.NoError(t, b.Flush(ctx, 0, octets))
			require.Empty(t, r.took(), "nothing was written")
			write(5000, 100)
			r.took()
			require.NoError(t, b.Flush(ctx, 5000, 100))
			require.Equal(t, x.one, r.took(), "one run")
			for _, off := range []int64{5000, 33000, 50000} {
				write(off, 100)
			}
			r.took()
			require.NoError(t, b.Flush(ctx, 0, octets))
			require.Equal(t, x.several, r.took(), "several")
			write(33000, 5000)
			r.took()
			require.NoError(t, b.Flush(ctx, 33000, 5000))
			require.Equal(t, x.hole, r.took(), "a hole is no other matter")
			require.NoError(t, b.Flush(ctx, 0, octets))
			require.Empty(t, r.took(), "once")
			require.NoError(t, b.Close())
		})
	}
}

// TestCMT_13_FlushThenBeginsToWrite: the pages of a file, not those of a file that bypasses the cache.
func TestCMT_13_FlushThenBeginsToWrite(t *testing.T) {
	for what, want := range map[string][]string{
		"file":   {"begin data 5000+100", "fdatasync data", "fstatfs data", "stat data"},
		"direct": {"fdatasync data", "fstatfs data", "stat data"},
	} {
		r, path := record(t)
		b, err := opens[what].open(r, path, octets)
		require.NoError(t, err)
		_, err = b.WriteAt(make([]byte, 100), 5000)
		require.NoError(t, err)
		r.took()
		told := make(chan error, 1)
		pending, err := b.(asyncFlusher).flushThen(5000, 100, func(err error) func() {
			return func() { told <- err }
		})
		require.NoError(t, err)
		require.True(t, pending)
		require.NoError(t, <-told)
		require.Equal(t, want, r.took())
		require.NoError(t, b.Close())
	}
}

// TestCMT_13_16_30_FlushThenWhoseBeginFails: ext4 drops pages for which it finds no place on the disk. The call that
// begins to write them fails, and no sync after that does.
func TestCMT_13_16_30_FlushThenWhoseBeginFails(t *testing.T) {
	for err, want := range map[error]Code{
		syscall.EIO: DataLost, unix.EUCLEAN: DataLost, unix.EINTR: DataLost, unix.EAGAIN: DataLost, unix.ENOMEM: DataLost, unix.EROFS: ReadOnly,
		unix.ENOSYS: OK, unix.EPERM: OK, unix.EINVAL: OK, // there is no such call
	} {
		r, path := record(t)
		b, e := opens["file"].open(r, path, octets)
		require.NoError(t, e)
		write := func(off int64) {
			_, err := b.WriteAt(make([]byte, 100), off)
			require.NoError(t, err)
		}
		write(5000)
		write(5100) // on the same page
		r.fails(func(call string) error {
			if call == "begin data 5000+100" {
				return err
			}
			return nil
		})
		told := make(chan error, 1)
		pending, e := b.(asyncFlusher).flushThen(5000, 100, func(err error) func() {
			return func() { told <- err }
		})
		require.NoError(t, e)
		require.True(t, pending)
		require.Equal(t, want, codeOf(<-told), "%v", err)
		ctx := t.Context()
		require.Equal(t, want, codeOf(b.Flush(ctx, 5100, 100)), "%v", err)
		for range 2 { // rounds are used in turn
			write(5000)
			require.NoError(t, b.Flush(ctx, 5000, 100), "written again")
		}
		require.NoError(t, b.Close())
	}
}

// TestCMT_53_CloseOfAFileWaitsForItsSync: no sync uses a descriptor that may belong to another file by then.
func TestCMT_53_CloseOfAFileWaitsForItsSync(t *testing.T) {
	for what, call := range map[string]string{"file": "fdatasync data", "direct": "fdatasync data", "mapping": "msync 0+4096"} {
		r, path := record(t)
		b, err := opens[what].open(r, path, octets)
		require.NoError(t, err)
		var g *group
		switch b := b.(type) {
		case *File:
			g = b.group
		case *Mapping:
			g = b.group
		}
		_, err = b.WriteAt([]byte("record"), 0)
		require.NoError(t, err)
		ended, closed := false, make(chan error, 1)
		r.fails(func(c string) error { // the recorder's lock is held: nothing else is called meanwhile
			if c == call {
				go func() { closed <- b.Close() }()
				for limit := time.Now().Add(10 * time.Second); !ended && time.Now().Before(limit); runtime.Gosched() {
					g.mu.Lock()
					ended = g.closed
					g.mu.Unlock()
				}
			}
			return nil
		})
		require.NoError(t, b.Flush(context.Background(), 0, 6))
		require.NoError(t, <-closed)
		require.True(t, ended, "Close has no more Flush begin, and waits")
		calls := r.took()
		require.Less(t, slices.Index(calls, call), slices.Index(calls, "close data"))
		require.ErrorIs(t, b.Flush(context.Background(), 0, 6), fs.ErrClosed)
	}
}

// TestCMT_30_EveryCallOfACommitMayFail, and the status says what that means. For the calls that sync
// see TestCMT_13_16_30_SyncThatFailsWithAnyErrno.
func TestCMT_30_EveryCallOfACommitMayFail(t *testing.T) {
	for what, x := range map[string]struct{ sync, after []string }{
		"file":              {[]string{"fdatasync data"}, []string{"fstatfs data", "stat data"}},
		"direct":            {[]string{"fdatasync data"}, []string{"fstatfs data", "stat data"}},
		"mapping":           {[]string{"msync 4096+4096"}, []string{"fstatfs data", "stat data"}},
		"persistent memory": {[]string{"write back 4096+4096", "fence"}, []string{"stat data"}},
	} {
		for _, call := range x.after {
			t.Run(what+", "+call, func(t *testing.T) {
				r, path := record(t)
				b, err := opens[what].open(r, path, octets)
				require.NoError(t, err)
				ctx := context.Background()
				write := func() {
					_, err = b.WriteAt(make([]byte, 4096), 4096)
					require.NoError(t, err)
				}
				write()
				r.fails(once(call, syscall.EIO))
				require.ErrorIs(t, b.Flush(ctx, 4096, 4096), syscall.EIO)
				require.ErrorIs(t, b.Flush(ctx, 4096, 4096), ErrDataLost)
				write()
				require.NoError(t, b.Flush(ctx, 4096, 4096))
				write()
				r.fails(once(call, syscall.ENOMEM))
				require.Equal(t, Transient, codeOf(b.Flush(ctx, 4096, 4096)))
				r.took()
				require.NoError(t, b.Flush(ctx, 4096, 4096))
				require.Equal(t, slices.Concat(x.sync, x.after), r.took(), "it is done again")
				require.NoError(t, b.Close())
			})
		}
	}
}

// TestCMT_13_16_30_SyncThatFailsWithAnyErrno loses what it was to write: the errno is that of the file system, which has
// failed to write a page. Linux reports this once, and has dropped the page.
func TestCMT_13_16_30_SyncThatFailsWithAnyErrno(t *testing.T) {
	for what, sync := range map[string]string{"file": "fdatasync data", "direct": "fdatasync data", "mapping": "msync 4096+4096"} {
		for no, want := range map[unix.Errno]Code{
			unix.EIO: DataLost, unix.ENODATA: DataLost, unix.EINVAL: DataLost, unix.EINTR: DataLost, unix.EAGAIN: DataLost,
			unix.ENOMEM: DataLost, unix.EROFS: ReadOnly, // it is of no use to write again
		} {
			r, path := record(t)
			b, err := opens[what].open(r, path, octets)
			require.NoError(t, err)
			write := func() {
				_, err := b.WriteAt(make([]byte, 4096), 4096)
				require.NoError(t, err)
			}
			write()
			r.took()
			r.fails(once(sync, no))
			ctx := t.Context()
			err = b.Flush(ctx, 4096, 4096)
			require.Equal(t, want, codeOf(err), "%s, %v", what, no)
			require.ErrorIs(t, err, no)
			require.ErrorIs(t, err, ErrDataLost)
			require.Equal(t, []string{sync}, r.took(), "it is not called again")
			err = b.Flush(ctx, 4096, 4096)
			require.Equal(t, want, codeOf(err), "%s, %v", what, no)
			require.ErrorIs(t, err, no)
			require.Empty(t, r.took(), "nor when it is asked again")
			write()
			require.NoError(t, b.Flush(ctx, 4096, 4096), "written again")
			require.NoError(t, b.Close())
		}
	}
}

// TestCMT_13_16_FailedSyncOfAFileThatIsOpened is an error, whatever its errno: an earlier process has no loss hidden
// from the next one.
func TestCMT_13_16_FailedSyncOfAFileThatIsOpened(t *testing.T) {
	for _, no := range []unix.Errno{unix.EINTR, unix.EAGAIN, unix.EIO} {
		path := filepath.Join(t.TempDir(), "data")
		err := sysfail.Run(t, no, func() error {
			_, err := OpenFile(path, &FileOptions{Size: octets})
			return err
		}, unix.SYS_FSYNC)
		require.ErrorIs(t, err, no)
		require.ErrorContains(t, err, "fsync "+path)
	}
}

// TestCMT_30_FileSystemThatTurnsReadOnly: the sync succeeds, and what it should have
// written stays in memory.
func TestCMT_30_FileSystemThatTurnsReadOnly(t *testing.T) {
	for _, what := range []string{"file", "direct", "mapping"} {
		for _, runs := range []int64{1, 2} {
			r, path := record(t)
			b, err := opens[what].open(r, path, octets)
			require.NoError(t, err)
			for i := range runs {
				_, err = b.WriteAt(make([]byte, 100), 16384*i)
				require.NoError(t, err)
			}
			r.readOnly = true
			require.Equal(t, ReadOnly, codeOf(b.Flush(context.Background(), 0, octets)))
			require.Equal(t, ReadOnly, codeOf(b.Flush(context.Background(), 0, 1)), "as often as it is asked")
			r.readOnly = false
			require.NoError(t, b.Flush(context.Background(), 0, octets), "once it takes changes again, it is synced again")
			require.NoError(t, b.Close())
		}
	}
}

// TestCMT_30_FileThatIsCut: another program has made it shorter, and no sync misses what is gone.
func TestCMT_30_FileThatIsCut(t *testing.T) {
	for _, what := range []string{"file", "direct", "mapping"} {
		r, path := record(t)
		b, err := opens[what].open(r, path, octets)
		require.NoError(t, err)
		ctx := context.Background()
		write := func(off int64) {
			_, err := b.WriteAt(make([]byte, 4096), off)
			require.NoError(t, err, what)
		}
		write(0)
		require.NoError(t, b.Flush(ctx, 0, 4096))
		write(8192)
		require.NoError(t, os.Truncate(path, 4096))
		for range 2 {
			require.Equal(t, DataLost, codeOf(b.Flush(ctx, 8192, 4096)), what)
		}
		require.NoError(t, b.Flush(ctx, 0, 4096), "what was durable still is")
		require.NoError(t, os.Truncate(path, octets))
		write(8192)
		require.NoError(t, b.Flush(ctx, 8192, 4096), "written again where it is as long as it was")
		require.NoError(t, b.Close())
	}
}

// TestCMT_30_WriteThatTheSystemRefuses: the Commits after it report it, not only the first one.
func TestCMT_30_WriteThatTheSystemRefuses(t *testing.T) {
	for _, what := range []string{"file", "direct"} {
		r, path := record(t)
		b, err := opens[what].open(r, path, octets)
		require.NoError(t, err)
		r.fails(func(call string) error {
			if strings.HasPrefix(call, "write ") {
				return syscall.ENOSPC
			}
			return nil
		})
		n, err := b.WriteAt(make([]byte, 4096), 4096)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Zero(t, n)
		r.fails(nil)
		r.took()
		for range 2 {
			require.ErrorIs(t, b.Flush(context.Background(), 4096, 4096), ErrDataLost)
		}
		require.Empty(t, r.took())
		require.NoError(t, b.Flush(context.Background(), 0, 4096), "others are as they were")
		require.NoError(t, b.Close())
	}
}

// TestCMT_13_16_DirectWriteThatFailsLosesItsBlocks: the rest of those blocks was written, too.
func TestCMT_13_16_DirectWriteThatFailsLosesItsBlocks(t *testing.T) {
	r, path := record(t)
	f, err := openFile(r, path, &FileOptions{Size: 1 << 20, Direct: true})
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 8192), 0)
	require.NoError(t, err)
	r.fails(func(call string) error {
		if strings.HasPrefix(call, "write") {
			return syscall.EIO
		}
		return nil
	})
	_, err = f.WriteAt(make([]byte, 100), 100)
	require.ErrorIs(t, err, syscall.EIO)
	r.fails(nil)
	require.ErrorIs(t, f.Flush(t.Context(), 4000, 96), ErrDataLost, "in the same block")
	require.NoError(t, f.Flush(t.Context(), 4096, 4096), "in another one")
	require.NoError(t, f.Close())
}

// TestCMT_16_DirectMovesWholeBlocks: it keeps the rest of blocks that are not filled, while it has the file alone.
func TestCMT_16_DirectMovesWholeBlocks(t *testing.T) {
	r, path := record(t)
	f, err := openFile(r, path, &FileOptions{Size: 4 << 20, Direct: true})
	require.NoError(t, err)
	free := func(reading bool) bool { // whether others may read, or write whole blocks
		if f.direct.mu.TryLock() {
			f.direct.mu.Unlock()
			return true
		}
		if reading && f.direct.mu.TryRLock() {
			f.direct.mu.RUnlock()
			return true
		}
		return false
	}
	alone, shared := 0, 0
	r.fails(func(string) error {
		switch {
		case free(false):
			require.Fail(t, "no write holds the lock")
		case free(true):
			shared++
		default:
			alone++
		}
		return nil
	})
	ones := bytes.Repeat([]byte{1}, 3<<20)
	r.took()
	write := func(off, n int64) []string {
		alone, shared = 0, 0
		got, err := f.WriteAt(ones[:n], off)
		require.NoError(t, err)
		require.EqualValues(t, n, got)
		return r.took()
	}
	require.Equal(t, []string{"write data 4096+8192"}, write(4096, 8192), "whole blocks")
	require.Equal(t, []int{0, 1}, []int{alone, shared}, "beside others")
	require.Equal(t, []string{"read data 0+4096", "write data 0+4096"}, write(100, 50))
	require.Equal(t, []int{2, 0}, []int{alone, shared}, "from reading to writing no other write runs")
	require.Equal(t, []string{"read data 12288+8192", "write data 12288+8192"}, write(16000, 1000), "across two blocks")
	require.Equal(t, []string{"read data 20480+4096", "write data 20480+4096"}, write(20480, 8), "that it begins at one is not enough")
	require.Equal(t, []int{2, 0}, []int{alone, shared})
	require.Equal(t, []string{"read data 24576+4096", "write data 24576+4096"}, write(24576+4088, 8), "nor that it ends at one")
	require.Equal(t, []string{
		"read data 1048576+1048576", "write data 1048576+1048576", "write data 2097152+1048576", "read data 3145728+4096", "write data 3145728+4096",
	}, write(1<<20+1, 2<<20), "in pieces")

	alone = 0
	got := make([]byte, 4<<20)
	for _, part := range []struct{ off, n int64 }{{0, 200}, {4000, 100}, {99, 1}, {0, 4 << 20}} {
		n, err := f.ReadAt(got[:part.n], part.off)
		require.NoError(t, err)
		require.EqualValues(t, part.n, n)
	}
	require.Zero(t, alone, "reading is beside others")
	want := make([]byte, 4<<20)
	for _, part := range []struct{ off, n int64 }{{4096, 8192}, {100, 50}, {16000, 1000}, {20480, 8}, {24576 + 4088, 8}, {1<<20 + 1, 2 << 20}} {
		copy(want[part.off:part.off+part.n], ones)
	}
	require.True(t, slices.Equal(want, got))
	for _, part := range []struct {
		off int64
		n   int
	}{{-1, 1}, {4 << 20, 1}, {4<<20 - 1, 2}, {4<<20 + 1, 0}} {
		_, err = f.WriteAt(make([]byte, part.n), part.off)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	_, err = f.ReadAt(make([]byte, 1), -1)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	r.fails(nil)
	require.NoError(t, os.Truncate(path, 4096))
	_, err = f.ReadAt(make([]byte, 8), 8192)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "some other program has cut the file")
	require.NoError(t, f.Close())
}

// TestCMT_46_WordsOfAFileAreWrittenAlone: a reader sees all eight octets or none.
func TestCMT_46_WordsOfAFileAreWrittenAlone(t *testing.T) {
	for _, what := range []string{"file", "direct"} {
		r, path := record(t)
		b, err := opens[what].open(r, path, octets)
		require.NoError(t, err)
		f := b.(*File)
		require.True(t, f.Atomic())
		var reads, writes bool // may begin
		r.fails(func(string) error {
			if writes = f.whole.TryLock(); writes {
				f.whole.Unlock()
			}
			if reads = f.whole.TryRLock(); reads {
				f.whole.RUnlock()
			}
			return nil
		})
		for _, x := range []struct {
			off   int64
			n     int
			alone bool
		}{{8, 8, true}, {4096, 8, true}, {12, 8, false}, {8, 16, false}, {8, 7, false}, {4096, 4096, false}} {
			_, err = f.WriteAt(make([]byte, x.n), x.off)
			require.NoError(t, err)
			require.Equal(t, !x.alone, reads, "a read beside a write of %d octets at %d", x.n, x.off)
			require.False(t, writes)
		}
		_, err = f.ReadAt(make([]byte, 8), 8)
		require.NoError(t, err)
		require.True(t, reads, "beside each other")
		require.False(t, writes, "but not beside a word that is written")
		r.fails(nil)
		require.NoError(t, b.Close())
	}
}

// TestCMT_13_BlockDevice: nothing is reserved on it, it is opened exclusively, and it is synced
// like a file.
func TestCMT_13_BlockDevice(t *testing.T) {
	r, path := record(t)
	require.NoError(t, os.WriteFile(path, make([]byte, octets), 0o600))
	r.mode = unix.S_IFBLK
	f, err := openFile(r, path, &FileOptions{Size: octets})
	require.NoError(t, err)
	require.Equal(t, []string{
		"open data rw excl", "stat data", "size data", "fstat data", "size data", "fsync data", "forget data",
	}, r.took())
	_, err = f.WriteAt(make([]byte, 8), 8)
	require.NoError(t, err)
	require.NoError(t, f.Flush(context.Background(), 8, 8))
	require.Equal(t, []string{"write data 8+8", "fdatasync data", "fstatfs data", "stat data"}, r.took())
	require.NoError(t, f.Close())
	m, err := mapShared(r, path, 0)
	require.NoError(t, err)
	_, err = m.WriteAt(make([]byte, 8), 8)
	require.NoError(t, err)
	require.NoError(t, m.Flush(context.Background(), 8, 8), "that its node has no octets is no matter")
	require.NoError(t, m.Close())
	_, err = openFile(r, path, &FileOptions{Size: 2 * octets})
	require.ErrorContains(t, err, "should have at least 131072", "it cannot grow")
	r.fails(func(call string) error {
		if strings.HasPrefix(call, "open data") {
			return syscall.EBUSY
		}
		return nil
	})
	_, err = openFile(r, path, nil)
	require.ErrorIs(t, err, ErrInUse, "the system has it, or another process")
}

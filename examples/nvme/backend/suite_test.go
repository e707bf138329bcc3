package backend

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var ctx = context.Background()

// suiteSize is the size of the subjects: several chunks of memory, and a part of one.
const suiteSize = 3<<20 + 8192

// A subject is a Backend of suiteSize zeros, which the suite of NVME-76 tests.
type subject struct {
	name string
	// open makes it, or skips the test. reopen closes it and opens it again. A nil reopen means that closing loses the
	// contents.
	open func(t *testing.T) (b Backend, reopen func() Backend)
}

func subjects() []subject {
	all := []subject{
		{"mem", memorySubject(4096)},
		{"mem 512", memorySubject(512)},
		{"file", fileSubject(FileConfig{})},
		{"file 512", fileSubject(FileConfig{BlockSize: 512})},
		{"file dsync", fileSubject(FileConfig{Sync: true})},
		{"fake", fakeSubject(FakeConfig{})},
		{"fake 512", fakeSubject(FakeConfig{BlockSize: 512})},
		{"fake plain", fakeSubject(FakeConfig{Plain: true})},
		{"fake through", fakeSubject(FakeConfig{Through: true})},
	}
	return append(all, platformSubjects()...)
}

func memorySubject(block int) func(*testing.T) (Backend, func() Backend) {
	return func(t *testing.T) (Backend, func() Backend) {
		b, err := NewMemory(MemoryConfig{Size: suiteSize, BlockSize: block})
		require.NoError(t, err)
		t.Cleanup(func() { _ = b.Close() })
		return b, nil
	}
}

func fileSubject(c FileConfig) func(*testing.T) (Backend, func() Backend) {
	return func(t *testing.T) (Backend, func() Backend) {
		c := c
		c.Path, c.Size = filepath.Join(t.TempDir(), "disk"), suiteSize
		return reopening(t, func() (Backend, error) { return OpenFile(c) })
	}
}

// reopening opens a Backend, and closes it at the end of the test.
func reopening(t *testing.T, open func() (Backend, error)) (Backend, func() Backend) {
	b, err := open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b, func() Backend {
		require.NoError(t, b.Close())
		b, err = open()
		require.NoError(t, err)
		return b
	}
}

func fakeSubject(c FakeConfig) func(*testing.T) (Backend, func() Backend) {
	return func(t *testing.T) (Backend, func() Backend) {
		c := c
		c.Size = suiteSize
		f, err := NewFake(c)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f, func() Backend { // a power cut
			f, err := f.Crash(1, false)
			require.NoError(t, err)
			return f
		}
	}
}

func eachSubject(t *testing.T, f func(t *testing.T, b Backend, reopen func() Backend)) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			b, reopen := s.open(t)
			f(t, b, reopen)
		})
	}
}

// fill returns n octets that differ from block to block and from seed to seed.
func fill(n int64, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i)*31 + byte(i>>9)*17 + seed | 1
	}
	return p
}

func mustRead(t *testing.T, b Backend, off, n int64) []byte {
	t.Helper()
	p := bytes.Repeat([]byte{0xEE}, int(n))
	require.NoError(t, b.ReadAt(ctx, p, off))
	return p
}

// requireEqual compares without printing a megabyte.
func requireEqual(t *testing.T, want, got []byte, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		if want[i] != got[i] {
			require.Failf(t, what, "octet %d is %#x and should be %#x", i, got[i], want[i])
		}
	}
}

func requireZeros(t *testing.T, b Backend, off, n int64, what string) {
	t.Helper()
	requireEqual(t, make([]byte, n), mustRead(t, b, off, n), what)
}

func TestNVME_76_SizesAndEnds(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		bs := int64(b.BlockSize())
		require.EqualValues(t, suiteSize, b.Size())
		require.False(t, b.ReadOnly())
		require.Zero(t, Describe(b).Granularity%int(bs))
		requireZeros(t, b, 0, b.Size(), "what was never written is zeros")

		last := b.Size() - bs
		require.NoError(t, b.WriteAt(ctx, fill(bs, 1), last, false))
		requireEqual(t, fill(bs, 1), mustRead(t, b, last, bs), "the last block")
		require.NoError(t, b.ReadAt(ctx, nil, b.Size()), "no octets at the end")
		require.NoError(t, b.WriteAt(ctx, nil, b.Size(), true))
		require.NoError(t, b.WriteZeroes(ctx, b.Size(), 0, true, false))
		require.NoError(t, b.Trim(ctx, 0, 0))

		for _, r := range []struct {
			off, n int64
			kind   error
		}{
			{b.Size(), bs, ErrOutOfRange},
			{last, 2 * bs, ErrOutOfRange},
			{-bs, bs, ErrOutOfRange},
			{math.MaxInt64 &^ (bs - 1), bs, ErrOutOfRange},
			{bs / 2, bs, ErrUnaligned},
			{0, bs / 2, ErrUnaligned},
		} {
			p := make([]byte, r.n)
			require.ErrorIs(t, b.ReadAt(ctx, p, r.off), r.kind, "%d octets at %d", r.n, r.off)
			require.ErrorIs(t, b.WriteAt(ctx, p, r.off, false), r.kind)
			require.ErrorIs(t, b.WriteZeroes(ctx, r.off, r.n, false, false), r.kind)
			require.ErrorIs(t, b.Trim(ctx, r.off, r.n), r.kind)
		}
		require.ErrorIs(t, b.Trim(ctx, 0, -bs), ErrOutOfRange)
		requireEqual(t, fill(bs, 1), mustRead(t, b, last, bs), "errors have changed nothing")
	})
}

func TestNVME_63_CompletedWritesAreVisible(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		want := make([]byte, b.Size())
		bs := int64(b.BlockSize())
		for i, r := range []struct{ off, n int64 }{
			{0, bs}, {bs, 3 * bs}, {64<<10 - bs, 2 * bs}, {1<<20 - bs, 1<<20 + 2*bs}, {2 * bs, bs}, {suiteSize - bs, bs},
		} {
			p := fill(r.n, byte(2*i))
			require.NoError(t, b.WriteAt(ctx, p, r.off, i%2 == 1))
			copy(want[r.off:], p)
			requireEqual(t, p, mustRead(t, b, r.off, r.n), "what was written")
		}
		requireEqual(t, want, mustRead(t, b, 0, b.Size()), "and all the rest is as it was")
	})
}

func TestNVME_70_WriteZeroes(t *testing.T) {
	for _, unmap := range []bool{false, true} {
		eachSubject(t, func(t *testing.T, b Backend, reopen func() Backend) {
			bs := int64(b.BlockSize())
			want := fill(b.Size(), 3)
			require.NoError(t, b.WriteAt(ctx, want, 0, false))
			for _, r := range []struct{ off, n int64 }{{bs, bs}, {8 * bs, 1<<20 + 5*bs}, {2<<20 - bs, 1<<20 + bs}, {suiteSize - bs, bs}} {
				require.NoError(t, b.WriteZeroes(ctx, r.off, r.n, unmap, true))
				clear(want[r.off : r.off+r.n])
			}
			requireEqual(t, want, mustRead(t, b, 0, b.Size()), "zeros where they should be, and only there")
			if reopen != nil {
				require.NoError(t, b.Flush(ctx))
				requireEqual(t, want, mustRead(t, reopen(), 0, suiteSize), "and so after it was opened again")
			}
		})
	}
}

func TestNVME_72_TrimmedBlocksAreZeros(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, reopen func() Backend) {
		if Describe(b).KeepsTrimmed {
			t.Skip("trimmed blocks need not be zeros")
		}
		bs := int64(b.BlockSize())
		want := fill(b.Size(), 5)
		require.NoError(t, b.WriteAt(ctx, want, 0, false))
		require.NoError(t, b.Flush(ctx))
		// Ranges that end within a chunk, at its end, and beyond it. Of the last, short chunk: a part, and the whole.
		for _, r := range []struct{ off, n int64 }{{bs, 2 * bs}, {1<<20 - bs, 1<<20 + 2*bs}, {suiteSize - bs, bs}, {3 << 20, 8192}} {
			require.NoError(t, b.Trim(ctx, r.off, r.n))
			clear(want[r.off : r.off+r.n])
			requireEqual(t, want, mustRead(t, b, 0, b.Size()), "trimmed blocks are zeros at once, and others as they were")
		}
		require.NoError(t, b.WriteAt(ctx, fill(bs, 7), 1<<20, false))
		copy(want[1<<20:], fill(bs, 7))
		requireEqual(t, want, mustRead(t, b, 0, b.Size()), "a trimmed block can be written")
		if reopen != nil {
			require.NoError(t, b.Flush(ctx))
			requireEqual(t, want, mustRead(t, reopen(), 0, suiteSize), "and so after it was opened again")
		}
	})
}

func TestNVME_76_DurableAfterFlushOrFUA(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, reopen func() Backend) {
		bs := int64(b.BlockSize())
		require.NoError(t, b.WriteAt(ctx, fill(bs, 1), 0, false))
		require.NoError(t, b.WriteAt(ctx, fill(4*bs, 2), bs, false))
		require.NoError(t, b.WriteZeroes(ctx, 2*bs, bs, false, false))
		require.NoError(t, b.Trim(ctx, 3*bs, bs))
		require.NoError(t, b.Flush(ctx), "covers all that was completed")
		require.NoError(t, b.WriteAt(ctx, fill(bs, 3), 8*bs, true), "FUA needs no Flush")
		require.NoError(t, b.WriteAt(ctx, fill(bs, 4), 9*bs, false))
		require.NoError(t, b.WriteZeroes(ctx, 9*bs, bs, true, true))
		if reopen == nil {
			return
		}
		keeps := Describe(b).KeepsTrimmed
		b = reopen()
		requireEqual(t, fill(bs, 1), mustRead(t, b, 0, bs), "flushed")
		requireEqual(t, fill(4*bs, 2)[:bs], mustRead(t, b, bs, bs), "flushed")
		requireZeros(t, b, 2*bs, bs, "flushed zeros")
		if !keeps {
			requireZeros(t, b, 3*bs, bs, "flushed trim")
		}
		requireEqual(t, fill(bs, 3), mustRead(t, b, 8*bs, bs), "written with FUA")
		requireZeros(t, b, 9*bs, bs, "zeros with FUA")
	})
}

func TestNVME_76_CancelledAndClosed(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		bs := int64(b.BlockSize())
		over, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, b.WriteAt(over, fill(bs, 1), 0, false), context.Canceled)
		require.ErrorIs(t, b.ReadAt(over, make([]byte, bs), 0), context.Canceled)
		require.ErrorIs(t, b.WriteZeroes(over, 0, bs, false, false), context.Canceled)
		require.ErrorIs(t, b.Trim(over, 0, bs), context.Canceled)
		requireZeros(t, b, 0, bs, "nothing was written")

		require.NoError(t, b.Close())
		require.ErrorIs(t, b.ReadAt(ctx, make([]byte, bs), 0), ErrClosed)
		require.ErrorIs(t, b.WriteAt(ctx, make([]byte, bs), 0, true), ErrClosed)
		require.ErrorIs(t, b.WriteZeroes(ctx, 0, bs, true, true), ErrClosed)
		require.ErrorIs(t, b.Trim(ctx, 0, bs), ErrClosed)
		require.ErrorIs(t, b.Flush(ctx), ErrClosed)
		require.ErrorIs(t, b.Close(), ErrClosed)
	})
}

// An endingContext ends after it was looked at so many times.
type endingContext struct {
	context.Context
	looks int
}

func (c *endingContext) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestNVME_76_CancelledAtTheLastMoment: an operation that changes octets checks its context when no other operation can
// come in between any more. Its host may repeat it on another connection, and what that connection writes later must
// stay.
func TestNVME_76_CancelledAtTheLastMoment(t *testing.T) {
	eachSubject(t, func(t *testing.T, b Backend, _ func() Backend) {
		bs := int64(b.BlockSize())
		newer := fill(1<<20, 1)
		require.NoError(t, b.WriteAt(ctx, newer, 0, false))
		after := func(looks int) context.Context { return &endingContext{ctx, looks} }
		for what, err := range map[string]error{
			"write":        b.WriteAt(after(1), fill(bs, 2), 0, false),
			"FUA":          b.WriteAt(after(1), fill(bs, 3), 0, true),
			"write zeroes": b.WriteZeroes(after(2), 0, bs, false, false),
			"deallocate":   b.WriteZeroes(after(2), 0, 1<<20, true, false),
			"trim":         b.Trim(after(2), 0, 1<<20),
		} {
			require.ErrorIs(t, err, context.Canceled, what)
		}
		requireEqual(t, newer, mustRead(t, b, 0, 1<<20), "nothing was changed")
	})
}

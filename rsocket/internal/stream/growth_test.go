package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A reader is a Stream that reads what a peer sends, at times that the test sets.
type reader struct {
	*testing.T
	*Stream
	now    time.Duration
	larger []int // halves that should have been
}

func newReader(t *testing.T) *reader {
	big := sizes{half: 4096, credits: 384, ring: 8192}
	s := New(big.config(), big.private())
	_, ok := s.Next()
	require.True(t, ok, "the second half is told")
	return &reader{T: t, Stream: s, now: time.Second}
}

// comes receives n octets of the peer, after a time.
func (r *reader) comes(after time.Duration, n uint32) {
	r.now += after
	drained := r.Drained()
	require.NoError(r, r.Message(wire.NewMessage(wire.OpData, n), nil))
	if drained {
		r.Came(r.now)
	}
}

// reads reads n octets, in a time, and tells the peer. Halves that should be larger are enlarged.
func (r *reader) reads(in time.Duration, n int) {
	r.now += in
	r.Consume(n)
	if half, small := r.Free(r.now); small {
		r.larger = append(r.larger, half)
		r.Larger(wire.Slot{Key: 9, Length: 2 * r.in.halves[half].Length})
	}
	for _, ok := r.Next(); ok; _, ok = r.Next() {
		r.Completed()
	}
}

// TestRSK_8_HalvesGrow if the peer has filled both halves, and the program reads them faster than the peer can send again.
func TestRSK_8_HalvesGrow(t *testing.T) {
	r := newReader(t)
	r.comes(0, 4096)
	r.comes(0, 4096)
	r.reads(10*time.Microsecond, 4096)
	r.reads(10*time.Microsecond, 4096)
	require.Empty(t, r.larger)
	r.comes(6*time.Microsecond, 4096)
	r.comes(0, 4096)
	r.reads(10*time.Microsecond, 4096)
	require.Equal(t, []int{0}, r.larger)
	r.reads(10*time.Microsecond, 4096)
	require.Equal(t, []int{0}, r.larger, "one for each wait")
	require.EqualValues(t, 8192+4096, r.in.told-r.in.read)
	r.comes(20*time.Microsecond, 8192)
	r.reads(10*time.Microsecond, 8192)
	require.Equal(t, []int{0, 0}, r.larger)
}

// TestRSK_8_HalvesStay as they are if more room would not help.
func TestRSK_8_HalvesStay(t *testing.T) {
	t.Run("the peer is not much later", func(t *testing.T) {
		r := newReader(t)
		r.comes(0, 4096)
		for range 10 {
			r.comes(0, 4096)
			r.reads(10*time.Microsecond, 4096)
			r.reads(10*time.Microsecond, 4096)
			r.comes(5*time.Microsecond, 4096)
		}
		require.Empty(t, r.larger)
	})
	t.Run("the program reads slowly", func(t *testing.T) {
		r := newReader(t)
		r.comes(0, 4096)
		for range 10 {
			r.comes(0, 4096)
			r.reads(time.Millisecond, 4096)
		}
		require.Empty(t, r.larger)
	})
	t.Run("the peer sends slowly", func(t *testing.T) {
		r := newReader(t)
		for range 500 {
			r.comes(time.Millisecond, 1000)
			r.reads(time.Microsecond, 1000)
		}
		require.Empty(t, r.larger)
	})
	t.Run("the peer sends a half from time to time", func(t *testing.T) {
		r := newReader(t)
		for range 500 {
			r.comes(time.Millisecond, 4096)
			r.reads(time.Microsecond, 4096)
		}
		require.Len(t, r.larger, 3)
		require.EqualValues(t, 6*4096, r.in.halves[0].Length+r.in.halves[1].Length, "they have room for some times as much")
	})
	t.Run("the clock stands", func(t *testing.T) {
		r := newReader(t)
		for range 10 {
			r.comes(0, 4096)
			r.reads(0, 4096)
		}
		require.Empty(t, r.larger)
	})
}

// TestRSK_8_AHalfIsMeasuredOnce, however often the program asks before it can be told.
func TestRSK_8_AHalfIsMeasuredOnce(t *testing.T) {
	r := newReader(t)
	r.comes(0, 4096)
	r.Consume(4096)
	_, _ = r.Free(time.Minute)
	_, _ = r.Free(time.Hour)
	require.Equal(t, time.Minute, r.in.growth.last)
}

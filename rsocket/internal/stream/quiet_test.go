package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// TestRSK_17_QuietMessages: every sixteenth small message has a completion, one message for each eighth of the ring, every
// second SGL, and the last message of all.
func TestRSK_17_QuietMessages(t *testing.T) {
	big := sizes{half: 8192, credits: 384, ring: 8192}
	next := func(s *Stream, n int) bool {
		s.Queue(n)
		w, ok := s.Next()
		require.True(t, ok)
		require.Equal(t, n, w.N)
		return w.Quiet
	}
	s := New(big.config(), big.private())
	_, ok := s.Next()
	require.True(t, ok, "the second half is told")
	for i := range 14 {
		require.True(t, next(s, 1), i)
	}
	require.False(t, next(s, 1), "with the SGL there are sixteen")
	require.True(t, next(s, 1023-1))
	require.True(t, next(s, 1))
	require.False(t, next(s, 1))
	require.False(t, next(s, 1024))

	for i := range 4 {
		require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 8192), nil))
		s.Consume(8192)
		if w, ok := s.Next(); ok {
			require.Equal(t, i%2 == 0, w.Quiet, i)
		}
	}
	require.True(t, next(s, 1))
	s.Shutdown()
	w, ok := s.Next()
	require.True(t, ok)
	require.False(t, w.Quiet)
}

// TestRSK_17_FlushedWithQuietMessages: a peer that has ended the stream needs none of them, and no completion reports that they have left.
func TestRSK_17_FlushedWithQuietMessages(t *testing.T) {
	big := sizes{half: 8192, credits: 384, ring: 8192}
	for _, n := range []int{1, 1024} {
		s := New(big.config(), big.private())
		_, ok := s.Next()
		require.True(t, ok)
		s.Queue(n)
		w, ok := s.Next()
		require.True(t, ok)
		require.Equal(t, n == 1, w.Quiet)
		require.NoError(t, s.Message(wire.NewMessage(wire.OpCtrl, wire.CtrlDisconnect), nil))
		require.Equal(t, w.Quiet, s.Flushed())
		s.Completed()
		s.Completed()
		require.True(t, s.Flushed())
	}
}

// TestRSK_20_RoomIsFreeWhenTheMessageHasLeft the QP, not before: until then the QP may read it.
func TestRSK_20_RoomIsFreeWhenTheMessageHasLeft(t *testing.T) {
	big := sizes{half: 8192, credits: 384, ring: 4096}
	s := New(big.config(), big.private())
	_, ok := s.Next()
	require.True(t, ok, "the second half is told")
	s.Completed()
	for _, n := range []int{3000, 1096} {
		_, room := s.Room()
		require.GreaterOrEqual(t, room, n)
		s.Queue(n)
		_, ok := s.Next()
		require.True(t, ok)
	}
	_, room := s.Room()
	require.Zero(t, room)
	s.Completed()
	off, room := s.Room()
	require.Zero(t, off)
	require.Equal(t, 3000, room)
}

// TestRSK_20_AnEmptyRingIsFilledFromItsStart: the messages that are with the QP stay where they are.
func TestRSK_20_AnEmptyRingIsFilledFromItsStart(t *testing.T) {
	big := sizes{half: 8192, credits: 384, ring: 4096}
	s := New(big.config(), big.private())
	_, ok := s.Next()
	require.True(t, ok, "the second half is told")
	s.Completed()
	for range 3 {
		for _, at := range []int{0, 1000} {
			off, room := s.Room()
			require.Equal(t, at, off, "the one before may still be read")
			require.Equal(t, 4096-at, room)
			s.Queue(1000)
			w, ok := s.Next()
			require.True(t, ok)
			require.Equal(t, at, w.Off)
		}
		s.Completed()
		off, _ := s.RingSpace()
		require.Equal(t, 2000, off, "one is with the QP")
		s.Completed()
	}
}

package stream

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// mapping makes a stream whose peer may map that many entries, and itself has room for two.
func mapping(t *testing.T, entries int) *Stream {
	big := sizes{half: 8192, credits: 384, ring: 8192}
	cfg, private := big.config(), big.private()
	cfg.IOMap, private.IOMap = entries, 2
	private.Table.Addr, private.Table.Slots = 0x1000, 3
	s := New(cfg, private)
	_, ok := s.Next()
	require.True(t, ok, "the second half is told")
	s.Completed()
	return s
}

func entryMessage(i uint32) wire.Message { return wire.NewMessage(wire.OpIOMapSGL, i) }

// TestRSK_18_EntriesAreTold in turn, behind the slots, each by a message that takes a credit.
func TestRSK_18_EntriesAreTold(t *testing.T) {
	s := mapping(t, 0)
	for i := range uint64(2) {
		e := wire.Entry{Offset: 100 * i, Slot: wire.Slot{Key: 5, Length: 10}}
		require.True(t, s.Map(e))
		require.True(t, s.Owes())
		w, ok := s.Next()
		require.True(t, ok)
		require.Equal(t, entryMessage(uint32(i)), w.Message)
		require.Equal(t, OneEntry, w.Writes)
		require.Equal(t, e, w.Entry)
		require.Equal(t, 0x1000+3*16+24*i, w.Addr)
		require.EqualValues(t, simKey+1, w.Key)
		require.Equal(t, i+1, s.out.sent)
		require.Equal(t, i+1, s.polls.sent, "it takes a receive of the peer")
		require.False(t, s.Owes())
	}
	require.False(t, s.Map(wire.Entry{}), "the peer has no room")
}

// TestRSK_10_18_EntriesAreAbandoned with the octets: the end does not wait for a message that needs a credit.
func TestRSK_10_18_EntriesAreAbandoned(t *testing.T) {
	s := mapping(t, 0)
	s.out.limit = 0
	require.True(t, s.Map(wire.Entry{}))
	s.Disconnect()
	_, ok := s.Next()
	require.False(t, ok)
	s.Abandon()
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, disconnect, w.Message)
	require.False(t, s.Owes())
}

// TestRSK_18_AnEntryWaitsForCredits, and the end of the stream for the entry.
func TestRSK_18_AnEntryWaitsForCredits(t *testing.T) {
	s := mapping(t, 0)
	s.out.limit = 0
	require.True(t, s.Map(wire.Entry{}))
	s.Shutdown()
	_, ok := s.Next()
	require.False(t, ok)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 384), &oneSlot{}))
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, entryMessage(0), w.Message)
	w, ok = s.Next()
	require.True(t, ok)
	require.Equal(t, shutdown, w.Message)
}

// TestRSK_6_AnEntryWaitsForAReceive: credits alone do not say that the peer has posted its receives again.
func TestRSK_6_AnEntryWaitsForAReceive(t *testing.T) {
	s := mapping(t, 0)
	s.out.sent, s.polls.sent = 384-spare, 384-spare
	s.out.limit = 384
	require.True(t, s.Map(wire.Entry{}))
	_, ok := s.Next()
	require.False(t, ok)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 384+1), &oneSlot{}), "the peer has read one message")
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, entryMessage(0), w.Message)
}

// TestRSK_18_EntriesOfThePeer: what it has mapped is found by offset.
func TestRSK_18_EntriesOfThePeer(t *testing.T) {
	s := mapping(t, 2)
	_, ok := s.Mapped(0)
	require.False(t, ok, "nothing was told")
	for i, e := range []wire.Entry{
		{Offset: 1000, Slot: wire.Slot{Addr: 0x5000, Key: 9, Length: 100}},
		{Offset: math.MaxUint64 - 10, Slot: wire.Slot{Addr: 7, Key: 8, Length: 10}},
	} {
		require.NoError(t, s.Message(entryMessage(uint32(i)), &anyTable{entry: e}))
	}
	for offset, want := range map[uint64]wire.Slot{
		1000: {Addr: 0x5000, Key: 9, Length: 100}, 1099: {Addr: 0x5063, Key: 9, Length: 1},
		math.MaxUint64 - 10: {Addr: 7, Key: 8, Length: 10}, math.MaxUint64 - 1: {Addr: 16, Key: 8, Length: 1},
	} {
		at, ok := s.Mapped(offset)
		require.True(t, ok, offset)
		require.Equal(t, want, at, offset)
	}
	for _, offset := range []uint64{0, 999, 1100, math.MaxUint64} {
		_, ok := s.Mapped(offset)
		require.False(t, ok, offset)
	}
	require.EqualValues(t, 2, s.in.seq, "credits for them are given back")
}

// TestRSK_18_BadEntries end the stream.
func TestRSK_18_BadEntries(t *testing.T) {
	for want, c := range map[string]struct {
		i uint32
		e wire.Entry
	}{
		"entry 2 of an iomap that has 2":       {2, wire.Entry{}},
		"a slot of 1073741825 octets":          {0, wire.Entry{Slot: wire.Slot{Length: wire.MaxHalf + 1}}},
		"beyond the last tagged offset":        {0, wire.Entry{Slot: wire.Slot{Addr: math.MaxUint64, Length: 1}}},
		"an entry of 2 octets at offset 0xfff": {0, wire.Entry{Offset: math.MaxUint64 - 1, Slot: wire.Slot{Length: 2}}},
	} {
		require.ErrorContains(t, mapping(t, 2).Message(entryMessage(c.i), &anyTable{entry: c.e}), want)
	}
	s := mapping(t, 2)
	require.NoError(t, s.Message(shutdown, nil))
	require.ErrorContains(t, s.Message(entryMessage(0), &anyTable{}), "after SHUTDOWN")

	s = mapping(t, 2)
	s.in.limit = 0
	require.ErrorContains(t, s.Message(entryMessage(0), &anyTable{}), "more than the credits")
}

// TestRSK_18_MappedWrites use the ring, and need neither slots nor credits.
func TestRSK_18_MappedWrites(t *testing.T) {
	s := mapping(t, 2)
	s.out.limit = 0
	require.NoError(t, s.Message(entryMessage(0), &anyTable{entry: wire.Entry{Slot: wire.Slot{Addr: 0x5000, Key: 9, Length: 10_000}}}))
	to, ok := s.Mapped(0)
	require.True(t, ok)
	for _, n := range []int{8000, 100} {
		at, room := s.RingSpace()
		require.Equal(t, 8192, at+room, "up to the end of the ring")
		w := s.WriteMapped(to, n)
		require.Equal(t, Mapped, w.Writes)
		require.Equal(t, []int{at, n}, []int{w.Off, w.N})
	}
	require.Zero(t, s.out.sent)
	s.Completed()
	at, room := s.RingSpace()
	require.Equal(t, []int{8100, 92}, []int{at, room}, "up to the end of the ring, though there is room at its start")
	s.WriteMapped(to, room)
	at, room = s.RingSpace()
	require.Equal(t, []int{0, 8000}, []int{at, room})
	s.WriteMapped(to, room)
	_, room = s.RingSpace()
	require.Zero(t, room)
}

// TestRSK_18_MappedWritesWaitForTheirTurn: octets of the stream that are queued already go ahead of them, and the send queue has a limited
// size.
func TestRSK_18_MappedWritesWaitForTheirTurn(t *testing.T) {
	s := mapping(t, 2)
	s.out.limit = 0
	s.Queue(10)
	_, room := s.RingSpace()
	require.Zero(t, room, "octets wait for credits")
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 384), &oneSlot{}))
	_, ok := s.Next()
	require.True(t, ok)
	for range maxPosts - 1 {
		_, room = s.RingSpace()
		require.NotZero(t, room)
		s.WriteMapped(wire.Slot{Addr: 0x5000, Key: 9, Length: 10}, 1)
	}
	_, room = s.RingSpace()
	require.Zero(t, room, "the send queue is full")
	s.Completed()
	_, room = s.RingSpace()
	require.NotZero(t, room)
}

// TestRSK_18_NothingIsQueuedBehindAnEntryThatWaits: octets that are written later would overtake it.
func TestRSK_18_NothingIsQueuedBehindAnEntryThatWaits(t *testing.T) {
	s := mapping(t, 0)
	s.posts.controls = maxControls
	require.True(t, s.Map(wire.Entry{}))
	_, ok := s.Next()
	require.False(t, ok)
	_, n := s.Room()
	require.Zero(t, n)
	s.posts.controls--
	_, ok = s.Next()
	require.True(t, ok)
	_, n = s.Room()
	require.NotZero(t, n)
}

// TestRSK_18_AnEntryIsBehindWhatIsQueued, and ahead of what is queued later.
func TestRSK_18_AnEntryIsBehindWhatIsQueued(t *testing.T) {
	s := mapping(t, 0)
	s.Queue(10)
	require.True(t, s.Map(wire.Entry{}))
	for _, want := range []wire.Message{wire.NewMessage(wire.OpData, 10), entryMessage(0)} {
		w, ok := s.Next()
		require.True(t, ok)
		require.Equal(t, want, w.Message)
	}
}

// TestRSK_20_SGLsWaitUntilOthersHaveLeftTheQP: the send queue has a limited size.
func TestRSK_20_SGLsWaitUntilOthersHaveLeftTheQP(t *testing.T) {
	big := sizes{half: 8192, credits: 384, ring: 8192}
	s := New(big.config(), big.private())
	s.posts.controls = maxControls
	_, ok := s.Next()
	require.False(t, ok)
	s.posts.controls--
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, OneSlot, w.Writes)
}

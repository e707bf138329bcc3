package stream

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A oneSlot is a table with one slot, which Take returns for any number.
type oneSlot struct {
	slot  wire.Slot
	taken []int
}

func (o *oneSlot) Take(i int) wire.Slot {
	s := o.slot
	o.slot = wire.Slot{}
	o.taken = append(o.taken, i)
	return s
}

// Entry returns an entry that names no memory.
func (o *oneSlot) Entry(int) wire.Entry { return wire.Entry{} }

// TestRSK_6_WhatWasProvedStaysProved: an SGL acknowledges less than a message of data has proved before.
func TestRSK_6_WhatWasProvedStaysProved(t *testing.T) {
	a := account{entries: 16, sent: 10}
	a.control(proof{messages: 5, octets: noOctets})
	a.heard(6, 0)
	require.Zero(t, a.unknown())
	a.acknowledged(4)
	require.Zero(t, a.unknown())
}

// TestRSK_5_PeerWithOneSlot learns of a half when its slot is no longer filled, and of credits before that.
func TestRSK_5_PeerWithOneSlot(t *testing.T) {
	peer := common.private()
	peer.Table.Slots = 1
	s := New(common.config(), peer)
	_, ok := s.Next()
	require.False(t, ok, "the first half is in the private data")
	for range 8 {
		require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 1), nil))
	}
	s.Consume(8)
	w, ok := s.Next()
	require.True(t, ok, "half of the credits")
	require.Equal(t, Nothing, w.Writes)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 4096-8), nil))
	w, ok = s.Next()
	require.True(t, ok)
	require.Equal(t, OneSlot, w.Writes)
	require.Equal(t, peer.Table.Addr, w.Addr)
}

// TestRSK_14_UnknownMessages end the stream.
func TestRSK_14_UnknownMessages(t *testing.T) {
	for _, m := range []wire.Message{
		wire.NewMessage(1, 5), wire.NewMessage(2, 5), wire.NewMessage(3, 5), wire.NewMessage(5, 5),
		wire.NewMessage(wire.OpCtrl, 3), wire.NewMessage(wire.OpCtrl, wire.MaxData),
	} {
		require.ErrorContains(t, begun(t).Message(m, nil), "an unknown message", "%v", m)
	}
	require.ErrorContains(t, begun(t).Message(wire.NewMessage(wire.OpIOMapSGL, 0), nil), "entry 0 of an iomap that has 0")
}

// TestRSK_15_DataThatDoesNotFit: there are two halves of 4,096 octets and credits for 16 messages.
func TestRSK_15_DataThatDoesNotFit(t *testing.T) {
	data := func(n uint32) wire.Message { return wire.NewMessage(wire.OpData, n) }
	s := begun(t)
	require.ErrorContains(t, s.Message(data(8193), nil), "8193 octets where there is room for 8192")
	require.ErrorContains(t, New(common.config(), common.private()).Message(data(4097), nil), "room for 4096", "the second half was not told")
	require.NoError(t, s.Message(data(4096), nil))
	require.NoError(t, s.Message(data(4096), nil))
	require.ErrorContains(t, s.Message(data(1), nil), "1 octets where there is room for 0")
	_, _, n := s.Readable()
	require.Equal(t, 4096, n, "what was good may be read")

	s = begun(t)
	for range 16 {
		require.NoError(t, s.Message(data(1), nil))
	}
	require.ErrorContains(t, s.Message(data(1), nil), "17 messages of data, more than the credits")

	s = begun(t)
	require.NoError(t, s.Message(shutdown, nil))
	require.ErrorContains(t, s.Message(data(1), nil), "1 octets after SHUTDOWN")
}

// TestRSK_15_EmptyMessages count as messages, and up to 1,024 in a row are accepted.
func TestRSK_15_EmptyMessages(t *testing.T) {
	s := begun(t)
	empty := wire.NewMessage(wire.OpData, 0)
	for i := range 1024 {
		require.NoError(t, s.Message(empty, nil))
		if w, ok := s.Next(); ok {
			require.Equal(t, wire.NewMessage(wire.OpSGL, uint32(i+1+16)), w.Message, "they need no reader")
			s.Completed()
		}
	}
	require.ErrorContains(t, s.Message(empty, nil), "1025 messages without octets")

	s = begun(t)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 1), nil))
	require.NoError(t, s.Message(empty, nil))
	require.EqualValues(t, 0, s.in.seq, "it is behind what was not read")
	s.Consume(1)
	require.EqualValues(t, 2, s.in.seq)
}

// TestRSK_15_LimitsThatGoBack end the stream, and so do limits beyond all messages.
func TestRSK_15_LimitsThatGoBack(t *testing.T) {
	for _, limit := range []uint32{15, 0, 17, 18, math.MaxUint16} {
		require.ErrorContains(t, begun(t).Message(wire.NewMessage(wire.OpSGL, limit), &oneSlot{}), "a limit of")
	}
	s := begun(t)
	for range 3 {
		s.Queue(1)
		_, ok := s.Next()
		require.True(t, ok)
	}
	table := &oneSlot{}
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 18|1<<16), table), "more than 16 bits are sent, 16 count")
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 18), table))
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 19), table))
	require.Error(t, s.Message(wire.NewMessage(wire.OpSGL, 20), table), "three were sent")
	require.Equal(t, []int{1, 1, 1}, table.taken, "a slot is looked at for each SGL")
}

// TestRSK_15_Slots that cannot exist end the stream. A slot that is rewritten while it is used does not count.
func TestRSK_15_Slots(t *testing.T) {
	sgl := wire.NewMessage(wire.OpSGL, 16)
	for _, bad := range []wire.Slot{{Length: wire.MaxHalf + 1}, {Addr: math.MaxUint64, Length: 1}} {
		require.ErrorContains(t, begun(t).Message(sgl, &oneSlot{slot: bad}), "a slot of")
	}
	s := begun(t)
	table := &oneSlot{slot: wire.Slot{Addr: 1000, Key: 9, Length: 100}}
	require.NoError(t, s.Message(sgl, table))
	table.slot = wire.Slot{Addr: 5000, Key: 9, Length: 100}
	require.NoError(t, s.Message(sgl, table), "the first slot is in use")
	require.Equal(t, []int{1}, table.taken)
	s.Queue(4096)
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, 4096, w.N)
	s.Completed()
	s.Completed()
	s.Queue(100)
	w, ok = s.Next()
	require.True(t, ok)
	require.EqualValues(t, 1000, w.Addr, "it is the copy")
}

// TestRSK_3_SlotsInTurn: a half is filled before the next one, and the message says what was written.
func TestRSK_3_SlotsInTurn(t *testing.T) {
	s := begun(t)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 16), &oneSlot{slot: wire.Slot{Addr: 1 << 20, Key: 9, Length: 3000}}))
	s.Queue(3000)
	w, _ := s.Next()
	require.Equal(t, Work{Message: 3000, Writes: Data, Addr: 0, Key: simKey, Off: 0, N: 3000}, w)
	s.Completed()
	s.Completed()
	s.Queue(1096)
	s.Queue(3000)
	w, _ = s.Next()
	require.Equal(t, Work{Message: 1096, Writes: Data, Addr: 3000, Key: simKey, Off: 3000, N: 1096}, w, "the rest of the half")
	w, _ = s.Next()
	require.Equal(t, Work{Message: 3000, Writes: Data, Addr: 1 << 20, Key: 9, Off: 0, N: 3000}, w)
	s.Completed()
	s.Completed()
	s.Queue(1)
	_, ok := s.Next()
	require.False(t, ok, "there is no slot")
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 19), &oneSlot{slot: wire.Slot{Addr: 8, Key: 9, Length: 10}}))
	w, _ = s.Next()
	require.EqualValues(t, 8, w.Addr)
}

// TestRSK_3_SlotsOfThePeerInTurn: halves are told in the peer's slots, however many it has, and after the last slot in the first again.
func TestRSK_3_SlotsOfThePeerInTurn(t *testing.T) {
	for slots := range uint32(5) {
		if slots == 0 {
			continue
		}
		peer := sizes{half: 4096, credits: 64, ring: 4096}.private()
		peer.Table.Slots = slots
		s := New(common.config(), peer)
		s.Next() // tells the second half, if the peer has a slot for it
		for i := range uint64(6) {
			require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 4096), nil))
			s.Consume(4096)
			w, ok := s.Next()
			require.True(t, ok)
			require.Equal(t, OneSlot, w.Writes)
			told := i + 2 // the private data tell the first half
			if slots == 1 {
				told = i + 1
			}
			require.Equal(t, wire.SlotSize*(told%uint64(slots)), w.Addr, "half %d in %d slots", told, slots)
			s.Completed()
		}
	}
}

// TestRSK_5_10_NoSGLAfterSHUTDOWN: a peer that sends nothing more needs neither memory nor credits.
func TestRSK_5_10_NoSGLAfterSHUTDOWN(t *testing.T) {
	s := begun(t)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 4096), nil))
	require.NoError(t, s.Message(shutdown, nil))
	s.Consume(4096)
	_, ok := s.Next()
	require.False(t, ok)
}

// TestRSK_5_ConditionsOfAnSGL: half of the memory is free, or half of the credits were used.
func TestRSK_5_ConditionsOfAnSGL(t *testing.T) {
	s := begun(t)
	for range 7 {
		require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 100), nil))
	}
	s.Consume(700)
	_, ok := s.Next()
	require.False(t, ok, "neither")
	require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 100), nil))
	s.Consume(99)
	_, ok = s.Next()
	require.False(t, ok, "a message that was read in part does not count")
	s.Consume(1)
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, Work{Message: wire.NewMessage(wire.OpSGL, 24)}, w, "credits alone")
	require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 3296), nil))
	s.Consume(3296)
	w, ok = s.Next()
	require.True(t, ok)
	require.Equal(t, wire.NewMessage(wire.OpSGL, 25), w.Message)
	require.Equal(t, wire.Slot{Addr: 0, Key: simKey, Length: 4096}, w.Slot, "the first half again")
	require.EqualValues(t, 0, w.Addr, "in the first slot")
}

// TestRSK_6_APeerWithOneSlot is told a half when it has filled the other.
func TestRSK_6_APeerWithOneSlot(t *testing.T) {
	peer := common.private()
	peer.Table.Slots = 1
	s := New(common.config(), peer)
	_, ok := s.Next()
	require.False(t, ok, "the slot is in use")
	require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 4096), nil))
	w, ok := s.Next()
	require.True(t, ok)
	require.EqualValues(t, 0, w.Addr)
	require.Equal(t, wire.Slot{Addr: 4096, Key: simKey, Length: 4096}, w.Slot)
}

// TestRSK_6_AnSGLThatIsHeldBack: a peer with 16 receives that is not known to poll is told a half only
// when it has no room left.
func TestRSK_6_AnSGLThatIsHeldBack(t *testing.T) {
	own := common
	own.credits = 64
	s := New(own.config(), common.private())
	fills := func() (told bool) {
		require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 4096), nil))
		s.Consume(4096)
		s.Completed()
		w, told := s.Next()
		require.Equal(t, told, w.Writes == OneSlot)
		return told
	}
	_, told := s.Next()
	require.True(t, told)
	for range 3 {
		require.True(t, fills(), "there are receives")
	}
	require.False(t, fills())
	require.EqualValues(t, 4, s.polls.controls)
	s.posts.control() // fills completes what it has told before
	require.True(t, fills(), "it has no octets left")
	require.EqualValues(t, 5, s.polls.controls)
	require.True(t, fills(), "it has waited for that SGL")
	require.EqualValues(t, 1, s.polls.controls)

	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, OneSlot, w.Writes, "and the other half is free, too")
	s.Queue(1)
	w, ok = s.Next()
	require.True(t, ok)
	require.Equal(t, Data, w.Writes)
	s.polls.control(proof{messages: 64, octets: noOctets})
	require.EqualValues(t, 3, s.polls.controls)
	require.NoError(t, s.Message(wire.NewMessage(wire.OpSGL, 17), &oneSlot{}))
	require.EqualValues(t, 1, s.polls.controls, "its program has read what was sent behind the SGL, and not what was sent then")
	require.EqualValues(t, 1, s.polls.unknown())
}

// TestRSK_17_NothingIsAllocated in a ping-pong.
func TestRSK_17_NothingIsAllocated(t *testing.T) {
	a, b := join(t, common, common)
	p := program{total: math.MaxInt, write: 10, reads: 10}
	turn := func() {
		a.turn(p, nil)
		b.turn(p, nil)
	}
	for range 1000 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(1000, turn))
}

// TestRSK_6_WhatProvesThatAnSGLWasPolled: more than the peer could send without it, but not exactly as much.
func TestRSK_6_WhatProvesThatAnSGLWasPolled(t *testing.T) {
	for _, c := range []struct {
		messages, octets uint64
		proved           bool
	}{{16, 4096, false}, {17, 4096, true}, {16, 4097, true}} {
		a := account{entries: 64}
		a.control(proof{messages: 16, octets: 4096})
		a.heard(c.messages, c.octets)
		require.Equal(t, c.proved, a.controls == 0, "%d messages of %d octets", c.messages, c.octets)
	}
}

// TestRSK_6_MoreMessagesThanMarks: the last mark stands for several messages, and is removed when the last of them
// is proved.
func TestRSK_6_MoreMessagesThanMarks(t *testing.T) {
	a := account{entries: 1000}
	for i := range uint64(100) {
		a.sent++
		a.control(proof{messages: i, octets: noOctets})
	}
	require.EqualValues(t, 100, a.controls)
	a.heard(98, 0)
	require.EqualValues(t, 37, a.controls, "63 marks are proved, and the last is not")
	require.EqualValues(t, 63, a.polled)
	a.heard(100, 0)
	require.Zero(t, a.controls)
	require.EqualValues(t, 100, a.polled)
}

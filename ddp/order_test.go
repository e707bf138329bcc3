package ddp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Segments out of order.

func TestStallAheadOfTurnWaitsForABuffer(t *testing.T) {
	c := converse(t, 4)
	first, second := make([]byte, 2), make([]byte, 2)
	c.post(0, first)
	q := c.queues[0]
	q.missing = transport.ErrStall
	require.NoError(t, c.s.Segment(1, untagged(true, 0, 2, 0, []byte("cd"))), "no buffer yet for MSN 2")
	require.Zero(t, q.asked, "nor is it missed: its turn has not come")
	last := untagged(true, 0, 1, 0, []byte("ab"))
	require.ErrorIs(t, c.s.Segment(0, last), transport.ErrStall, "now its turn has come")
	c.wantDelivered("the message before it is delivered all the same", "qn=0 msn=1 len=2 ulp=43/00000000")
	require.ErrorIs(t, c.s.Segment(0, last), transport.ErrStall, "still nothing")
	c.post(0, second)
	require.NoError(t, c.s.Segment(0, last), "a buffer came")
	c.wantDelivered("each message once", "qn=0 msn=2 len=2 ulp=43/00000000")
	require.Equal(t, "abcd", string(first)+string(second))
}

func TestStallOfADeliveryAheadOfTurn(t *testing.T) {
	c := converse(t, 4)
	c.post(1, make([]byte, 2))
	c.queues[1].refuse = transport.ErrStall
	require.NoError(t, c.s.Segment(1, untagged(true, 1, 1, 0, []byte("ab"))), "placed ahead")
	empty := tagged(true, 0, 0, nil)
	require.ErrorIs(t, c.s.Segment(0, empty), transport.ErrStall, "its delivery is held back")
	c.wantDelivered("what came before is delivered", "tagged stag=0x00000000 ulp=40")
	require.ErrorIs(t, c.s.Segment(1, nil), transport.ErrStall, "a duplicate asks again, and is not looked at")
	c.queues[1].refuse = nil
	require.NoError(t, c.s.Segment(0, empty))
	c.wantDelivered("now", "qn=1 msn=1 len=2 ulp=43/00000000")
}

func TestVERBS_53_ErrorAheadOfTurnWaitsForIt(t *testing.T) {
	c := converse(t, 8)
	r, _ := c.region(8, nil)
	require.NoError(t, c.s.Segment(3, untagged(true, 9, 1, 0, []byte("x"))), "a bad segment ahead of its turn")
	require.NoError(t, c.s.Segment(2, tagged(true, 0, 0x1000, []byte("x"))), "one before it")
	require.NoError(t, c.s.Segment(1, tagged(true, r.STag(), 0x1000, []byte("x"))), "a good one before that")
	require.NoError(t, c.s.Err())
	err := c.s.Segment(0, tagged(true, r.STag(), 0x1000, []byte("x")))
	e := c.isFault("the first in the sender's order is reported", transport.DDPInvalidSTag, err)
	require.Equal(t, TaggedLen+1, e.Len)
	require.Len(t, c.delivered, 2, "after those before it were delivered")
}

func TestPlacedAheadIsStillCheckedInTurn(t *testing.T) {
	c := converse(t, 8)
	c.post(0, make([]byte, 2))
	c.post(0, make([]byte, 2))
	segment := untagged(true, 0, 2, 0, []byte("x"))
	require.NoError(t, c.s.Segment(1, segment), "MSN 2 has a buffer")
	err := c.s.Segment(0, tagged(false, 0, 0, nil))
	e := c.isFault("but MSN 1 was left out", transport.DDPMSNRange, err)
	require.Equal(t, segment[:UntaggedLen], e.Header)
	require.Equal(t, UntaggedLen+1, e.Len)
	require.Empty(t, c.delivered)
}

// What was placed before the stream ended, and could not be delivered yet, never is,
// whether the segment that it waited for comes again or for the first time.
func TestVERBS_51_NothingIsDeliveredAfterTheEnd(t *testing.T) {
	c := converse(t, 8)
	mem := make([]byte, 2)
	c.post(0, mem)
	message := untagged(true, 0, 1, 0, []byte("ab"))
	require.NoError(t, c.s.Segment(1, message))
	require.Equal(t, "ab", string(mem), "placed ahead")
	_ = c.isFault("the one before it ends the stream", transport.DDPInvalidSTag, c.s.Segment(0, tagged(true, 0x99, 0, []byte("x"))))
	require.NoError(t, c.s.Segment(0, tagged(true, 0, 0, nil)))
	require.NoError(t, c.s.Segment(1, message))
	require.NoError(t, c.s.Segment(2, tagged(true, 0, 0, nil)))
	c.wantDelivered("nothing is")
}

// A mixture is a peer's stream of messages of all kinds, and memory for it.
type mixture struct {
	*conversation
	region   *stag.Region
	mem      []byte
	segments [][]byte
}

const (
	mixedMessages = 12
	mixedLen      = 150 // the longest
)

func mix(t *testing.T, rnd *rand.Rand) *mixture {
	m := &mixture{conversation: converse(t, 0)}
	m.region, m.mem = m.conversation.region(mixedMessages*mixedLen, nil)
	var s Sender
	l := &scriptLLP{mulpdu: 40}
	for i := range mixedMessages {
		payload := make([]byte, rnd.IntN(mixedLen+1))
		for i := range payload {
			payload[i] = byte(rnd.Uint32())
		}
		out := &Message{RsvdULP: byte(i), Source: plain(payload)}
		if kind := rnd.IntN(3); kind == 2 {
			out.Tagged, out.STag, out.TO = true, m.region.STag(), m.region.BaseTO()+uint64(i*mixedLen)
		} else {
			out.QN = QN(kind)
			out.MSN = s.NextMSN(out.QN)
		}
		emit(t, &s, l, out)
	}
	m.segments = l.sent
	return m
}

// arrive takes the segments in the given order into fresh memory, and returns what
// was delivered and what the memory holds.
func (m *mixture) arrive(window int, order []int) (delivered []string, mem []byte) {
	m.s = New(Config{Table: m.table, Scope: alice, Upper: m, Window: window})
	m.queues, m.delivered = map[QN]*scriptQueue{}, nil
	clear(m.mem)
	bufs := make([]byte, 2*mixedMessages*mixedLen)
	for i := range 2 * mixedMessages {
		buf := bufs[i*mixedLen:][:mixedLen]
		m.post(QN(i%2), buf[:70], buf[70:])
	}
	for _, i := range order {
		require.NoError(m, m.s.Segment(uint64(i), slices.Clone(m.segments[i])), "segment %d", i)
	}
	return m.delivered, append(bufs, m.mem...)
}

// reorder returns an order of arrival of n segments in which none is more than
// window ahead of its turn, with some duplicates.
func reorder(rnd *rand.Rand, n, window int) []int {
	var order []int
	came := make([]bool, n)
	for next := 0; next < n; {
		i := min(next+rnd.IntN(window+1), n-1)
		if came[i] && rnd.IntN(4) > 0 {
			continue
		}
		came[i] = true
		order = append(order, i)
		for next < n && came[next] {
			next++
		}
	}
	return order
}

func TestDDP_16_44_45_46_47_ARCH_28_AnyOrderOfArrivalGivesTheSame(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := mix(t, rnd)
		inOrder := make([]int, len(m.segments))
		for i := range inOrder {
			inOrder[i] = i
		}
		wantDelivered, wantMem := m.arrive(0, inOrder)
		require.Len(t, wantDelivered, mixedMessages, "seed %d: in order all is delivered", seed)

		window := 1 + rnd.IntN(20)
		delivered, mem := m.arrive(window, reorder(rnd, len(m.segments), window))
		require.Equal(t, wantDelivered, delivered, "seed %d: the same deliveries in the same order", seed)
		require.Equal(t, wantMem, mem, "seed %d: the same memory", seed)
	}
}

// TestWindowGrowsWithHowFarAheadSegmentsAre, up to its limit, and no segment is lost
// meanwhile.
func TestWindowGrowsWithHowFarAheadSegmentsAre(t *testing.T) {
	var w window
	next := uint64(1<<40 - 3)
	for _, ahead := range []uint64{1, 15, 16, 3, 100, 32767} {
		w.put(slot{used: true, seq: next + ahead, len: int(ahead)}, next)
	}
	require.Len(t, w.ring, 32768)
	for _, ahead := range []uint64{1, 15, 16, 3, 100, 32767} {
		require.True(t, w.holds(next+ahead))
		require.EqualValues(t, ahead, w.slot(next+ahead).len)
	}
	require.Equal(t, 6, w.held)
	require.False(t, w.holds(next+2))
}

// TestWhatCannotBePlacedYetIsBounded: a peer that holds one segment back cannot have us
// remember all the others whole.
func TestWhatCannotBePlacedYetIsBounded(t *testing.T) {
	c := converse(t, 1<<15-1)
	long := make([]byte, 60_000)
	copy(long, []byte{0x41, 0x43})
	var err error
	n := 0
	for err == nil && n < 1000 {
		n++
		err = c.s.Segment(uint64(n), long)
	}
	require.ErrorContains(t, err, "before their turn")
	require.Equal(t, keptLimit/len(long)+1, n)
}

// TestEmptySegmentBeforeItsTurn: its error is the same as in its turn.
func TestEmptySegmentBeforeItsTurn(t *testing.T) {
	for _, empty := range [][]byte{nil, {}} {
		c := converse(t, 8)
		require.NoError(t, c.s.Segment(1, empty))
		c.post(0, make([]byte, 1))
		err := c.s.Segment(0, untagged(true, 0, 1, 0, []byte("x")))
		var e *SegmentError
		require.ErrorAs(t, err, &e)
		require.Equal(t, transport.DDPLocalCatastrophic, e.Code())
		require.ErrorContains(t, err, "segment of 0 octets")
		require.Len(t, c.delivered, 1)
	}
}

// TestWhatIsTakenInItsTurnIsForgiven: what was kept whole no longer counts when its turn
// has come, however much of it there is over time.
func TestWhatIsTakenInItsTurnIsForgiven(t *testing.T) {
	c := converse(t, 8)
	long := make([]byte, 60_000)
	for i := range uint64(200) { // three times what may be kept at a time
		c.post(0, make([]byte, len(long)))
		second := untagged(true, 0, MSN(2*i+2), 0, long) // has no buffer yet
		require.NoError(t, c.s.Segment(2*i+1, second))
		require.Equal(t, len(second), c.s.ahead.kept)
		require.ErrorIs(t, func() error {
			c.queues[0].missing = transport.ErrStall
			return c.s.Segment(2*i, untagged(true, 0, MSN(2*i+1), 0, nil))
		}(), transport.ErrStall)
		c.post(0, make([]byte, len(long)))
		require.NoError(t, c.s.Segment(2*i+1, nil), "a buffer came")
		require.Zero(t, c.s.ahead.kept)
		require.Zero(t, c.s.ahead.held)
	}
	require.Len(t, c.delivered, 400)
}

// TestWhatIsAheadIsDroppedWithTheStream: its memory is free.
func TestWhatIsAheadIsDroppedWithTheStream(t *testing.T) {
	c := converse(t, 8)
	require.NoError(t, c.s.Segment(2, untagged(true, 0, 9, 0, make([]byte, 1000))))
	require.Error(t, c.s.Segment(0, tagged(true, 0xdead, 0, []byte("x"))))
	require.Nil(t, c.s.ahead.ring)
	require.Zero(t, c.s.ahead.held)
	require.Zero(t, c.s.ahead.kept)
	require.NoError(t, c.s.Segment(1, nil), "and nothing is looked at any more")
}

package ddp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 5041 section 3: what DDP and the layer below it owe each other.

func TestDDP_1_ARCH_6_MULPDUIsAskedAfresh(t *testing.T) {
	var s Sender
	l := &scriptLLP{mulpdu: 118, capacity: 1}
	m := &Message{MSN: 1, Source: plain(octets(300))}
	done, err := s.Emit(l, m)
	require.NoError(t, err)
	require.False(t, done, "the batch is full after one segment")
	l.mulpdu = 68
	l.capacity = 0
	emit(t, &s, l, m)
	require.Len(t, l.sent[0], 118, "the first segment is as long as was allowed")
	for _, b := range l.sent[1:] {
		require.LessOrEqual(t, len(b), 68, "those after the change obey it")
	}
	require.Len(t, l.sent, 5, "100 octets, then four times 50")
}

func TestDDP_2_ARCH_6_SmallerMULPDULeavesQueuedSegmentsAlone(t *testing.T) {
	var s Sender
	l := &scriptLLP{mulpdu: 1018, capacity: 2}
	m := &Message{MSN: 1, Source: plain(octets(2500))}
	done, err := s.Emit(l, m)
	require.NoError(t, err)
	require.False(t, done)
	l.mulpdu = 618
	require.NoError(t, l.Flush(true))
	emit(t, &s, l, m)
	require.Len(t, l.sent, 3, "nothing is sent again")
	require.Len(t, l.sent[0], 1018, "what was queued stays as it was")
	require.Len(t, l.sent[1], 1018, "what was queued stays as it was")
	c := converse(t, 0)
	buf := make([]byte, 2500)
	c.post(0, buf)
	for _, b := range l.sent {
		c.sends("segments of unequal length make one message", b)
	}
	require.Equal(t, octets(2500), buf)
}

func TestDDP_33_SegmentsWithoutRoomForPayloadAreRefused(t *testing.T) {
	for _, m := range []*Message{{Tagged: true, Source: plain(octets(1))}, {MSN: 1, Source: plain(octets(1))}} {
		l := &scriptLLP{mulpdu: headerLen(m.Tagged)}
		_, err := new(Sender).Emit(l, m)
		require.Error(t, err, "a MULPDU that holds a header only carries no message")
		require.Empty(t, l.sent)
	}
}

func TestDDP_5_16_44_46_OrderComesFromTheLLP(t *testing.T) {
	c := converse(t, 4)
	r, mem := c.region(16, nil)
	buf := make([]byte, 4)
	c.post(0, buf)
	require.NoError(t, c.s.Segment(2, untagged(true, 0, 1, 2, []byte("cd"))))
	require.Equal(t, "cd", string(buf[2:]), "a segment before its turn is placed at once")
	require.NoError(t, c.s.Segment(1, untagged(false, 0, 1, 0, []byte("ab"))))
	require.Empty(t, c.delivered, "a complete message waits for the placement of an earlier one")
	require.NoError(t, c.s.Segment(0, tagged(true, r.STag(), 0x1000, []byte("first"))))
	require.Equal(t, "first", string(mem[:5]))
	c.wantDelivered("both are delivered, in the sender's order",
		"tagged stag="+r.STag().String()+" ulp=40", "qn=0 msn=1 len=4 ulp=43/00000000")
	require.Equal(t, "abcd", string(buf))
}

func TestDDP_11_45_LateDuplicatesAreDropped(t *testing.T) {
	c := converse(t, 4)
	buf := make([]byte, 2)
	c.post(0, buf)
	c.post(0, make([]byte, 2))
	first := untagged(true, 0, 1, 0, []byte("ab"))
	c.sends("a message", first)
	buf[0] = 'X' // the buffer is the receiver's again
	require.NoError(t, c.s.Segment(0, first), "its duplicate is no error")
	require.Equal(t, "Xb", string(buf), "and is not placed")

	ahead := untagged(true, 0, 2, 0, []byte("cd"))
	require.NoError(t, c.s.Segment(2, ahead))
	require.NoError(t, c.s.Segment(2, ahead), "nor is one of a segment that waits for its turn")
	require.NoError(t, c.s.Segment(1, tagged(false, 0, 0, nil)))
	c.wantDelivered("one delivery for each message",
		"qn=0 msn=1 len=2 ulp=43/00000000", "qn=0 msn=2 len=2 ulp=43/00000000")

	write := tagged(true, 0, 0, nil)
	require.NoError(t, c.s.Segment(3, write))
	for seq := range uint64(4) {
		require.NoError(t, c.s.Segment(seq, write))
	}
	c.wantDelivered("however often it comes", "tagged stag="+stag.STag(0).String()+" ulp=40")
}

// A gap on an LLP that promised order, or one too wide, cannot be waited for.
func TestDDP_5_60_GapBeyondTheWindowEndsTheStream(t *testing.T) {
	for _, window := range []int{0, 1, 3} {
		c := converse(t, window)
		for i := 1; i <= window; i++ {
			require.NoError(t, c.s.Segment(uint64(i), tagged(false, 0, 0, nil)), "within the window")
		}
		err := c.s.Segment(uint64(window+1), tagged(false, 0, 0, nil))
		e := c.isFault("beyond the window", transport.DDPLocalCatastrophic, err)
		require.Equal(t, TaggedLen, e.Len)
	}
}

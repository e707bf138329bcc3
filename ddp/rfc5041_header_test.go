package ddp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 5041 section 4: the headers.

func TestDDP_12_TaggedSegmentsGoBySTagAndTO(t *testing.T) {
	c := converse(t, 0)
	a, inA := c.region(16, nil)
	b, inB := c.region(16, nil)
	c.post(0, make([]byte, 16))
	c.sends("a segment for the first region", tagged(true, a.STag(), 0x1004, []byte("abc")))
	c.sends("a segment for the second", tagged(true, b.STag(), 0x1008, []byte("xyz")))
	require.Equal(t, []byte("abc"), inA[4:7], "STag and TO name the octets")
	require.Equal(t, []byte("xyz"), inB[8:11], "STag and TO name the octets")
	require.Len(t, c.queues[0].bufs, 1, "no untagged buffer was used")
}

func TestDDP_13_UntaggedSegmentsGoByQNMSNAndMO(t *testing.T) {
	c := converse(t, 0)
	q0, q1, q1b := make([]byte, 8), make([]byte, 8), make([]byte, 8)
	c.post(0, q0)
	c.post(1, q1)
	c.post(1, q1b)
	c.sends("QN 1, MSN 1", untagged(false, 1, 1, 0, []byte("ab")))
	c.sends("the same message from MO 2", untagged(true, 1, 1, 2, []byte("cd")))
	c.sends("QN 1, MSN 2", untagged(true, 1, 2, 0, []byte("ef")))
	c.sends("QN 0, MSN 1", untagged(true, 0, 1, 0, []byte("gh")))
	require.Equal(t, "gh", string(q0[:2]), "QN chooses the queue")
	require.Equal(t, "abcd", string(q1[:4]), "MO chooses the place")
	require.Equal(t, "ef", string(q1b[:2]), "MSN chooses the buffer")
}

// segmentsOf sends one message and returns its segments.
func segmentsOf(t *testing.T, mulpdu int, m *Message) [][]byte {
	t.Helper()
	l := &scriptLLP{mulpdu: mulpdu}
	emit(t, new(Sender), l, m)
	return l.sent
}

func TestDDP_14_15_LastSegmentAndNoOtherHasL(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 200, 201, 1000} {
		for _, m := range []*Message{
			{Tagged: true, Source: plain(octets(n))},
			{MSN: 1, Source: plain(octets(n))},
		} {
			segments := segmentsOf(t, 100+headerLen(m.Tagged), m)
			for i, b := range segments {
				require.Equal(t, i == len(segments)-1, b[0]&controlLast != 0,
					"L of segment %d of %d (tagged %v, %d octets)", i, len(segments), m.Tagged, n)
			}
			if m.Tagged {
				continue
			}
			last, err := ParseUntagged(segments[len(segments)-1])
			require.NoError(t, err)
			for _, b := range segments[:len(segments)-1] {
				h, err := ParseUntagged(b)
				require.NoError(t, err)
				require.Greater(t, last.MO, h.MO, "the segment with L has the highest MO")
			}
		}
	}
}

func TestDDP_17_RsvdIsZeroOnSend(t *testing.T) {
	for _, tag := range []bool{true, false} {
		m := &Message{Tagged: tag, RsvdULP: 0xff, RsvdULPWord: 0xffffffff, STag: 0xffffffff, Source: plain(octets(300))}
		for _, b := range segmentsOf(t, 118, m) {
			require.Zero(t, b[0]&0x3c, "Rsvd is sent as zero")
		}
	}
}

func TestDDP_18_RsvdIsIgnoredOnReceipt(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(16, nil)
	for v := byte(1); v < 16; v++ {
		c.post(0, make([]byte, 1))
		segment := tagged(true, r.STag(), 0x1000, []byte{v})
		segment[0] |= v << 2
		c.sends("a tagged segment with any Rsvd", segment)
		require.Equal(t, v, mem[0], "it is placed")
		segment = untagged(true, 0, MSN(v), 0, []byte{v})
		segment[0] |= v << 2
		c.sends("an untagged segment with any Rsvd", segment)
	}
	require.Len(t, c.delivered, 30, "all are delivered")
}

func TestDDP_19_VersionIsOne(t *testing.T) {
	for _, m := range []*Message{{Tagged: true, Source: plain(octets(300))}, {MSN: 1, Source: plain(octets(300))}} {
		for _, b := range segmentsOf(t, 118, m) {
			require.EqualValues(t, 1, Version(b), "DV is 1 in all segments")
		}
	}
	for _, v := range []byte{0, 2, 3} {
		c := converse(t, 0)
		r, mem := c.region(16, nil)
		segment := tagged(true, r.STag(), 0x1000, []byte("x"))
		segment[0] = segment[0]&^controlVersion | v
		c.wantFault(fmt.Sprintf("tagged, DV %d", v), transport.DDPTaggedVersion, segment)
		require.Zero(t, mem[0], "nothing is placed")

		c = converse(t, 0)
		c.post(0, mem)
		segment = untagged(true, 0, 1, 0, []byte("x"))
		segment[0] = segment[0]&^controlVersion | v
		c.wantFault(fmt.Sprintf("untagged, DV %d", v), transport.DDPUntaggedVersion, segment)
		require.Zero(t, mem[0], "nothing is placed")
		require.Zero(t, c.asked, "the upper layer is not asked about it")
	}
}

func TestDDP_20_22_23_TaggedHeaderInEverySegment(t *testing.T) {
	m := &Message{Tagged: true, RsvdULP: 0x42, STag: 0x11223344, TO: 0x1000, Source: plain(octets(250))}
	for i, b := range segmentsOf(t, 114, m) {
		h, err := ParseTagged(b)
		require.NoError(t, err)
		want := TaggedHeader{Last: i == 2, RsvdULP: 0x42, STag: 0x11223344, TO: 0x1000 + 100*uint64(i)}
		require.Equal(t, want, h, "segment %d carries what the upper layer gave", i)
	}

	var s Sender
	l := &scriptLLP{mulpdu: 1500}
	w := s.SegmentSender(l, 0)
	require.True(t, w.EmitTagged(0x42, 0x11223344, 0x5566778899aabbcc, &plain(octets(9))[0], false))
	w.Done()
	h, err := ParseTagged(l.sent[0])
	require.NoError(t, err)
	require.Equal(t, TaggedHeader{Last: true, RsvdULP: 0x42, STag: 0x11223344, TO: 0x5566778899aabbcc}, h, "so does a message of one segment")
}

func TestDDP_21_23_49_TaggedDeliveryHandsUpRsvdULPAndSTag(t *testing.T) {
	c := converse(t, 0)
	r, _ := c.region(16, nil)
	for ulp := range 256 {
		h := TaggedHeader{Last: true, RsvdULP: uint8(ulp), STag: r.STag(), TO: 0x1000}
		c.sends("a message", append(h.Append(nil), 1))
		c.wantDelivered("with its own RsvdULP and STag", fmt.Sprintf("tagged stag=%v ulp=%02x", r.STag(), ulp))
	}
}

func TestDDP_24_MessageMayStartAtAnyTO(t *testing.T) {
	for _, to := range []uint64{1, 3, 0x1_0000_0001, 1<<63 + 7, 1<<64 - 11} {
		c := converse(t, 0)
		r, mem := c.region(10, func(o *stag.Options) { o.BaseTO = to })
		m := &Message{Tagged: true, STag: r.STag(), TO: to, Source: plain(octets(10))}
		for _, b := range segmentsOf(t, 17, m) {
			c.sends("any TO will do", b)
		}
		require.Equal(t, octets(10), mem, "placed from TO %#x on", to)
	}
}

func TestDDP_25_26_27_30_UntaggedHeaderInEverySegment(t *testing.T) {
	m := &Message{RsvdULP: 0x44, RsvdULPWord: 0xdeadbe01, QN: 9, MSN: 77, Source: plain(octets(250))}
	for i, b := range segmentsOf(t, 118, m) {
		h, err := ParseUntagged(b)
		require.NoError(t, err)
		want := UntaggedHeader{Last: i == 2, RsvdULP: 0x44, RsvdULPWord: 0xdeadbe01, QN: 9, MSN: 77, MO: uint32(100 * i)}
		require.Equal(t, want, h, "segment %d carries what the upper layer gave", i)
	}

	var s Sender
	const qn = 0x11223344
	l := &scriptLLP{mulpdu: 118, capacity: 5}
	emit(t, &s, l, &Message{RsvdULP: 0x44, RsvdULPWord: 0xdeadbe01, QN: 9, MSN: 77, Source: plain(octets(250))})
	s.queue(qn).next = 0x55667788
	w := s.SegmentSender(l, qn)
	for i := range 3 {
		msn, ok := w.Emit(0x44, &plain(octets(9))[0], false)
		if i == 2 {
			require.False(t, ok, "the batch is full")
			require.Equal(t, MSN(0x55667788+2), s.NextMSN(qn), "and no MSN is used up")
			break
		}
		require.True(t, ok)
		h, err := ParseUntagged(l.sent[3+i])
		require.NoError(t, err)
		require.Equal(t, UntaggedHeader{Last: true, RsvdULP: 0x44, QN: qn, MSN: 0x55667788 + MSN(i)}, h, "so does a message of one segment, behind one of several")
		require.Equal(t, h.MSN, msn)
	}
	w.Done()
}

func TestDDP_26_49_UntaggedDeliveryHandsUpAll40Bits(t *testing.T) {
	c := converse(t, 0)
	c.post(0, make([]byte, 4))
	h := UntaggedHeader{Last: true, RsvdULP: 0xa5, RsvdULPWord: 0x01234567, MSN: 1}
	c.sends("a message", append(h.Append(nil), "data"...))
	c.wantDelivered("with its RsvdULP", "qn=0 msn=1 len=4 ulp=a5/01234567")
}

func TestDDP_28_29_MSNsStartAtOneAndWrapToZero(t *testing.T) {
	var s Sender
	require.EqualValues(t, 1, s.NextMSN(0), "the first message to a queue")
	require.EqualValues(t, 2, s.NextMSN(0), "the second")
	require.EqualValues(t, 1, s.NextMSN(2), "each queue counts for itself")
	s.queues[0].next = 0xffffffff
	require.Equal(t, MSN(0xffffffff), s.NextMSN(0), "the last number")
	require.EqualValues(t, 0, s.NextMSN(0), "is followed by 0")
	require.EqualValues(t, 1, s.NextMSN(0), "and 1")

	c := converse(t, 0)
	for range 3 {
		c.post(0, make([]byte, 1))
	}
	c.s.queue(0).due = 0xffffffff
	for _, msn := range []MSN{0xffffffff, 0, 1} {
		c.sends("the sink wraps too", untagged(true, 0, msn, 0, []byte("x")))
	}
	require.Len(t, c.delivered, 3, "all are delivered")

	c = converse(t, 0)
	c.post(0, make([]byte, 1))
	c.wantFault("a stream does not start with MSN 0", transport.DDPMSNRange, untagged(true, 0, 0, 0, nil))
}

func TestDDP_31_37_MOCountsFromTheStartOfTheMessage(t *testing.T) {
	segments := segmentsOf(t, 1500, &Message{RsvdULP: 0x43, MSN: 1, Source: plain(octets(2048))})
	require.Len(t, segments, 2, "2048 octets at a MULPDU of 1500")
	require.Equal(t, unhex(untaggedVectors[0].wire), segments[0][:UntaggedLen], "the first has MO 0")
	require.Equal(t, octets(2048)[:1482], segments[0][UntaggedLen:], "and all that fits")
	require.Equal(t, unhex(untaggedVectors[1].wire), segments[1][:UntaggedLen], "the second MO 1482")
	require.Equal(t, octets(2048)[1482:], segments[1][UntaggedLen:], "and the rest")

	before := 0
	for _, b := range segmentsOf(t, 1500, &Message{MSN: 1, Source: plain(octets(200_000))}) {
		h, err := ParseUntagged(b)
		require.NoError(t, err)
		require.EqualValues(t, before, h.MO, "the octets in front of it")
		before += len(b) - UntaggedLen
	}
}

func TestDDP_32_40_EmptyMessageIsOneSegmentOfAHeader(t *testing.T) {
	segments := segmentsOf(t, 1500, &Message{Tagged: true, RsvdULP: 0x40})
	require.Equal(t, [][]byte{unhex("c140 00000000 0000000000000000")}, segments, "tagged: one header with L")
	segments = segmentsOf(t, 1500, &Message{RsvdULP: 0x43, MSN: 5, Source: plain(nil)})
	require.Equal(t, [][]byte{unhex("4143 00000000 00000000 00000005 00000000")}, segments, "untagged: one header with L")

	c := converse(t, 0)
	c.post(0)
	c.sends("an empty Send is taken", untagged(true, 0, 1, 0, nil))
	c.wantDelivered("and uses a buffer", "qn=0 msn=1 len=0 ulp=43/00000000")
	require.Empty(t, c.queues[0].bufs, "none is left")
}

package ddp

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 5041 section 5: segmentation, placement, delivery.

func TestDDP_33_35_ARCH_4_AllDataIsSentInSegmentsWithinMULPDU(t *testing.T) {
	for _, mulpdu := range []int{19, 20, 128, 1500, 65535} {
		for _, n := range []int{0, 1, 2, 127, 128, 1481, 1482, 1483, 3000} {
			for _, m := range []*Message{{Tagged: true, Source: plain(octets(n))}, {MSN: 1, Source: plain(octets(n))}} {
				var got []byte
				for _, b := range segmentsOf(t, mulpdu, m) {
					require.LessOrEqual(t, len(b), mulpdu, "no segment exceeds MULPDU")
					got = append(got, b[headerLen(m.Tagged):]...)
				}
				require.Equal(t, octets(n), append([]byte{}, got...), "all octets go out, in order")
				require.EqualValues(t, n, m.Sent(), "and are counted")
			}
		}
	}
}

func TestDDP_34_MessageLengthStaysBelow4GiB(t *testing.T) {
	l := &scriptLLP{mulpdu: 1500, capacity: 1}
	half := []stag.Span{{Len: math.MaxInt32}, {Len: math.MaxInt32}, {Len: 1}}
	_, err := new(Sender).Emit(l, &Message{Tagged: true, Source: append(half, stag.Span{Len: 1})})
	require.ErrorIs(t, err, ErrTooLong, "2^32 octets are too many")
	require.Empty(t, l.sent, "nothing is sent of it")
	require.Equal(t, uint64(math.MaxUint32), stag.TotalLen(half), "2^32-1 octets are not")
	_, err = new(Sender).Emit(l, &Message{Tagged: true, Source: half})
	require.NotErrorIs(t, err, ErrTooLong)

	require.Error(t, checkOffset(math.MaxUint32, 1, 1<<33), "nor may a sink be led beyond them")
	require.NoError(t, checkOffset(math.MaxUint32-1, 1, 1<<33), "the last octet may be")
}

func TestDDP_36_PayloadOfAllValidSegmentsIsPlaced(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(64, nil)
	buf := make([]byte, 64)
	c.post(0, buf[:5], buf[5:6], buf[6:])
	for i := range 64 {
		c.sends("a tagged octet", tagged(false, r.STag(), 0x1000+uint64(i), octets(64)[i:i+1]))
		c.sends("an untagged octet", untagged(false, 0, 1, uint32(i), octets(64)[i:i+1]))
	}
	require.Equal(t, octets(64), mem)
	require.Equal(t, octets(64), buf)
	require.Empty(t, c.delivered, "placing is not delivering")
}

func TestDDP_38_39_TOCountsFromWhereTheUpperLayerSaid(t *testing.T) {
	m := &Message{Tagged: true, RsvdULP: 0x40, STag: 0xaabbcc01, TO: 16384, Source: plain(octets(2048))}
	segments := segmentsOf(t, 1500, m)
	require.Len(t, segments, 2, "2048 octets at a MULPDU of 1500")
	require.Equal(t, unhex(taggedVectors[0].wire), segments[0][:TaggedLen], "the first has the TO given")
	require.Equal(t, octets(2048)[:1486], segments[0][TaggedLen:], "and all that fits")
	require.Equal(t, unhex(taggedVectors[1].wire), segments[1][:TaggedLen], "the second 1486 more")
	require.Equal(t, octets(2048)[1486:], segments[1][TaggedLen:], "and the rest")
}

func TestDDP_41_EmptyTaggedMessageIgnoresSTagAndTO(t *testing.T) {
	c := converse(t, 0)
	mine, _ := c.region(8, nil)
	foreign, _ := c.region(8, func(o *stag.Options) { o.Scope = carol })
	noRight, _ := c.region(8, func(o *stag.Options) { o.Access = stag.LocalWrite })
	for _, at := range []struct {
		st stag.STag
		to uint64
	}{
		{0, 0},
		{0xffffffff, math.MaxUint64},
		{mine.STag(), 0x2000},
		{foreign.STag(), 0x1000},
		{noRight.STag(), 0x1000},
	} {
		c.sends("no STag or TO is wrong without payload", tagged(true, at.st, at.to, nil))
		c.wantDelivered("it is delivered", "tagged stag="+at.st.String()+" ulp=40")
	}
}

func TestDDP_42_43_MessagesAndOffsetsGoOutInOrder(t *testing.T) {
	var s Sender
	l := &scriptLLP{mulpdu: 38, capacity: 3}
	for range 5 {
		emit(t, &s, l, &Message{MSN: s.NextMSN(0), Source: plain(octets(90))})
	}
	require.Len(t, l.sent, 25)
	for i, b := range l.sent {
		h, err := ParseUntagged(b)
		require.NoError(t, err)
		require.EqualValues(t, 1+i/5, h.MSN, "messages in the order of submission")
		require.EqualValues(t, 20*(i%5), h.MO, "segments in rising order")
	}
}

func TestDDP_44_OctetsMayBePlacedTwice(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(4, nil)
	c.sends("octets", tagged(false, r.STag(), 0x1000, []byte("aaaa")))
	c.sends("and other ones in their place", tagged(true, r.STag(), 0x1001, []byte("bb")))
	require.Equal(t, "abba", string(mem))
}

func TestDDP_46_47_DeliveryWaitsForTheLastSegmentAndKeepsTheOrder(t *testing.T) {
	c := converse(t, 0)
	r, _ := c.region(16, nil)
	c.post(0, make([]byte, 4))
	c.post(1, make([]byte, 4))
	c.sends("a Write starts", tagged(false, r.STag(), 0x1000, []byte("ab")))
	c.sends("and goes on", tagged(false, r.STag(), 0x1002, []byte("cd")))
	require.Empty(t, c.delivered, "without its last segment nothing is delivered")
	c.sends("it ends", tagged(true, r.STag(), 0x1004, []byte("ef")))
	c.sends("QN 1", untagged(true, 1, 1, 0, []byte("gh")))
	c.sends("QN 0", untagged(true, 0, 1, 0, []byte("ij")))
	c.wantDelivered("one order for tagged and untagged messages of all queues",
		"tagged stag="+r.STag().String()+" ulp=40",
		"qn=1 msn=1 len=2 ulp=43/00000000",
		"qn=0 msn=1 len=2 ulp=43/00000000")
}

func TestDDP_48_51_LengthOfAShorterMessageIsReported(t *testing.T) {
	c := converse(t, 0)
	for range 4 {
		c.post(0, make([]byte, 100))
	}
	c.sends("one segment", untagged(true, 0, 1, 0, octets(40)))
	c.sends("all of the buffer", untagged(true, 0, 2, 0, octets(100)))
	c.sends("two segments", untagged(false, 0, 3, 0, octets(40)))
	c.sends("the second of them", untagged(true, 0, 3, 40, octets(20)))
	c.sends("a message that ends with an empty segment", untagged(false, 0, 4, 0, octets(7)))
	c.sends("which is legal though we never do so", untagged(true, 0, 4, 7, nil))
	c.wantDelivered("each with its length",
		"qn=0 msn=1 len=40 ulp=43/00000000", "qn=0 msn=2 len=100 ulp=43/00000000",
		"qn=0 msn=3 len=60 ulp=43/00000000", "qn=0 msn=4 len=7 ulp=43/00000000")
}

func TestDDP_50_SourceIsReferredToUntilTheFlush(t *testing.T) {
	src := octets(100)
	l := &scriptLLP{mulpdu: 1500}
	emit(t, new(Sender), l, &Message{MSN: 1, Source: plain(src)})
	require.False(t, l.staged[0], "memory goes by reference")
	require.Same(t, &src[0], &l.byRef[0][0][0], "so it may not change until the LLP took it over")
	emit(t, new(Sender), l, &Message{MSN: 1, Source: plain(src), Stage: true})
	require.True(t, l.staged[1], "unless it is to be copied at once")
}

func TestDDP_68_LongerMessageThanTheBufferIsAnError(t *testing.T) {
	c := converse(t, 0)
	buf := make([]byte, 100)
	c.post(0, buf[:60])
	c.sends("the message starts", untagged(false, 0, 1, 0, octets(40)))
	e := c.wantReport("and goes on beyond the buffer", transport.DDPTooLong, untagged(true, 0, 1, 40, octets(21)))
	require.Equal(t, UntaggedLen+21, e.Len)
	require.Equal(t, make([]byte, 60), buf[40:], "none of the segment is placed")
	require.Empty(t, c.delivered)
}

func TestDDP_35_SourceOfManyPiecesIsGathered(t *testing.T) {
	table := stag.NewTable()
	all := octets(500)
	mem := bytes.Clone(all[:200])
	r, err := table.Register(mem, stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	file, err := table.RegisterBuffer(&scriptBuffer{mem: bytes.Clone(all[200:400])},
		stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	m := &Message{MSN: 1, Source: []stag.Span{
		{Region: r, Len: 200},
		{Region: file, Len: 200},
		{Mem: all, Off: 400, Len: 100},
	}}
	l := &scriptLLP{mulpdu: 78, capacity: 2}
	emit(t, new(Sender), l, m)
	var got []byte
	for i, b := range l.sent {
		got = append(got, b[UntaggedLen:]...)
		start, end := 60*i, 60*i+len(b)-UntaggedLen
		require.Equal(t, end > 200 && start < 400, l.staged[i], "segment %d: only what was read into private memory is copied", i)
	}
	require.Equal(t, all, got, "memory, a Buffer and memory again, in order")
}

// TestDDP_35_OctetsOfABufferStayUntilTheyAreSent: long segments of a Buffer are read into memory to which the batch refers, and
// which is not used for others before the batch is out.
func TestDDP_35_OctetsOfABufferStayUntilTheyAreSent(t *testing.T) {
	const room = chunkLent
	all := octets(3*room + 100)
	file, err := stag.NewTable().RegisterBuffer(&scriptBuffer{mem: all}, stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	var s Sender
	l := &scriptLLP{mulpdu: UntaggedLen + room}
	for msn := range MSN(2) {
		emit(t, &s, l, &Message{MSN: msn, Source: []stag.Span{{Region: file, Len: len(all)}}})
	}
	require.Equal(t, []bool{false, false, false, true, false, false, false, true}, l.staged, "less than %d octets are copied", room)
	for i, p := range l.byRef {
		if at := i % 4 * room; !l.staged[i] {
			require.True(t, bytes.Equal(all[at:at+room], p[0]), "segment %d", i)
		}
	}
	last := &l.byRef[6][0][0]
	s.Release()
	emit(t, &s, l, &Message{MSN: 2, Source: []stag.Span{{Region: file, Len: len(all)}}})
	require.Same(t, last, &l.byRef[8][0][0], "it is used again")
}

// TestDDP_35_MemoryOfABufferIsCopied: its Buffer has it back before the batch is out.
func TestDDP_35_MemoryOfABufferIsCopied(t *testing.T) {
	const room = chunkLent
	file := &lentBuffer{scriptBuffer: scriptBuffer{mem: octets(2*room + 100)}}
	r, err := stag.NewTable().RegisterBuffer(file, stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	source := []stag.Span{{Region: r, Len: len(file.mem)}}
	var s Sender
	l := &scriptLLP{mulpdu: UntaggedLen + room}
	emit(t, &s, l, &Message{MSN: 1, Source: source})
	require.Equal(t, []bool{true, true, true}, l.staged, "no octet is lent to the batch")
	require.Equal(t, 3, file.lent, "for each segment")
	require.Equal(t, 3, file.returned)
	var got []byte
	for _, b := range l.sent {
		got = append(got, b[UntaggedLen:]...)
	}
	require.Equal(t, file.mem, got, "in order")
	l.capacity = 3
	done, err := s.Emit(l, &Message{MSN: 2, Source: source})
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, 4, file.lent, "the batch is full")
	require.Equal(t, 4, file.returned)
	s.Release()

	file.broken = true
	_, err = s.Emit(l, &Message{MSN: 2, Source: source})
	var p *stag.PanicError
	require.ErrorAs(t, err, &p)
	require.ErrorContains(t, err, "reading the payload at octet 0")
	file.broken, file.fail = false, errScripted
	_, err = s.Emit(l, &Message{MSN: 3, Source: source})
	require.ErrorIs(t, err, errScripted)
	require.ErrorContains(t, err, "reading the payload at octet 0")
}

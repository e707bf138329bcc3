package ddp

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 5041 section 7: the checks, their codes, and what happens after one failed.

func TestDDP_64_REG_10_QueueMustExist(t *testing.T) {
	for _, qn := range []QN{1, 4, 0xffffffff} {
		c := converse(t, 0)
		c.post(0, make([]byte, 8))
		c.wantFault("no such queue", transport.DDPQueue, untagged(true, qn, 1, 0, []byte("x")))
		c = converse(t, 0)
		c.wantFault("no such queue, no payload", transport.DDPQueue, untagged(true, qn, 1, 0, nil))
	}
}

func TestDDP_65_77_MissingBufferIsAFault(t *testing.T) {
	for _, payload := range [][]byte{nil, []byte("x")} {
		c := converse(t, 0)
		c.bind(0)
		c.wantFault("nothing was ever posted", transport.DDPNoBuffer, untagged(true, 0, 1, 0, payload))

		c = converse(t, 0)
		c.post(0, make([]byte, 8))
		c.sends("one was", untagged(true, 0, 1, 0, payload))
		c.wantFault("and is used up", transport.DDPNoBuffer, untagged(true, 0, 2, 0, payload))
	}
}

func TestDDP_77_UpperLayerMayRuleOnAMissingBuffer(t *testing.T) {
	c := converse(t, 0)
	q := c.bind(1)
	q.missing = transport.Faultf(transport.DDPMSNRange, "more Read Requests than agreed")
	c.wantFault("the code is the upper layer's", transport.DDPMSNRange, untagged(true, 1, 1, 0, nil))

	c = converse(t, 0)
	q = c.bind(0)
	q.missing = transport.ErrStall
	segment := untagged(true, 0, 1, 0, []byte("ab"))
	require.ErrorIs(t, c.s.Segment(0, segment), transport.ErrStall, "the segment is held back")
	require.ErrorIs(t, c.s.Segment(0, segment), transport.ErrStall, "again")
	require.NoError(t, c.s.Err(), "the stream goes on")
	buf := make([]byte, 2)
	c.post(0, buf)
	require.NoError(t, c.s.Segment(0, segment), "a buffer came")
	require.Equal(t, "ab", string(buf))
	require.Equal(t, 2, q.asked)
	c.wantDelivered("once", "qn=0 msn=1 len=2 ulp=43/00000000")
}

func TestDDP_66_OnlyTheMessageThatIsDue(t *testing.T) {
	for _, msn := range []MSN{0, 2, 3, 4, 0x80000001, 0xffffffff} {
		c := converse(t, 0)
		c.post(0, make([]byte, 8))
		c.post(0, make([]byte, 8)) // serves MSN 2, but MSN 1 has not come
		c.wantFault("MSN 1 is due", transport.DDPMSNRange, untagged(true, 0, msn, 0, []byte("x")))
		c = converse(t, 0)
		c.bind(0)
		c.wantFault("MSN 1 is due, and nothing is posted", transport.DDPMSNRange, untagged(true, 0, msn, 0, nil))
	}
	c := converse(t, 0)
	c.post(0, make([]byte, 8))
	c.post(0, make([]byte, 8))
	c.sends("MSN 1", untagged(true, 0, 1, 0, nil))
	c.wantFault("MSN 1 was delivered", transport.DDPMSNRange, untagged(true, 0, 1, 0, nil))
}

// TestDDP_66_EarlySegmentOfAMessageWithoutABuffer: it is judged in its turn, and until then it touches no
// buffer of another message.
func TestDDP_66_EarlySegmentOfAMessageWithoutABuffer(t *testing.T) {
	for _, msn := range []MSN{0, 2, 1 + 1<<8, 1 + 1<<16, 1 + 1<<31} {
		c := converse(t, 4)
		buf := make([]byte, 8)
		c.post(0, buf)
		require.NoError(t, c.s.Segment(1, untagged(true, 0, msn, 0, []byte("early"))))
		require.Equal(t, make([]byte, 8), buf, "MSN %d has no buffer", msn)
		err := c.s.Segment(0, untagged(false, 0, 1, 0, []byte("one")))
		_ = c.isFault("MSN 1 is due", transport.DDPMSNRange, err)
		require.Equal(t, "one\x00\x00\x00\x00\x00", string(buf))
		require.Empty(t, c.delivered)
	}
}

func TestDDP_67_68_OffsetAndEndMustBeInTheBuffer(t *testing.T) {
	for _, at := range []struct {
		that string
		mo   uint32
		n    int
		want transport.Code // 0: legal
	}{
		{"all of the buffer", 0, 100, 0},
		{"the last octet", 99, 1, 0},
		{"nothing, at the end", 100, 0, 0},
		{"an octet at the end", 100, 1, transport.DDPTooLong},
		{"nothing, beyond the end", 101, 0, transport.DDPOffset},
		{"an octet beyond the end", 101, 1, transport.DDPOffset},
		{"one octet too long", 0, 101, transport.DDPTooLong},
		{"sum beyond 32 bits", math.MaxUint32, 2, transport.DDPOffset},
		{"empty with the largest MO", math.MaxUint32, 0, transport.DDPOffset},
	} {
		if at.want != 0 {
			for _, last := range []bool{false, true} {
				c := converse(t, 0)
				buf := make([]byte, 120)
				c.post(0, buf[10:40], buf[40:110])
				c.wantFault(at.that, at.want, untagged(last, 0, 1, at.mo, octets(at.n)))
				require.Equal(t, make([]byte, 120), buf, "%s: nothing is placed", at.that)
			}
			continue
		}
		c := converse(t, 0)
		buf := make([]byte, 120)
		c.post(0, buf[10:40], buf[40:110])
		c.sends("what is before", untagged(false, 0, 1, 0, make([]byte, at.mo)))
		c.sends(at.that, untagged(true, 0, 1, at.mo, octets(at.n)))
		require.Len(t, c.delivered, 1, at.that)
		require.Equal(t, octets(at.n), append([]byte{}, buf[10+at.mo:][:at.n]...), at.that)
	}
}

func TestDDP_69_STagMustBeValid(t *testing.T) {
	c := converse(t, 0)
	r, _ := c.region(8, nil)
	dead, _ := c.region(8, nil)
	require.NoError(t, c.table.Invalidate(t.Context(), dead))
	gone, _ := c.region(8, nil)
	require.NoError(t, c.table.Close(t.Context(), gone))
	for that, st := range map[string]stag.STag{
		"zero": 0, "another key": r.STag() ^ 1, "another index": r.STag() ^ 0x100,
		"invalidated": dead.STag(), "closed": gone.STag(),
	} {
		d := converse(t, 0)
		d.s.table = c.table
		d.wantFault(that, transport.DDPInvalidSTag, tagged(true, st, 0x1000, []byte("x")))
	}
}

func TestDDP_70_STagMustBelongToTheStream(t *testing.T) {
	for that, owner := range map[string]stag.Scope{"another PD": {PD: 2}, "another stream": bob, "neither": carol} {
		c := converse(t, 0)
		r, mem := c.region(8, func(o *stag.Options) { o.Scope = owner })
		c.wantFault(that, transport.DDPNotAssociated, tagged(true, r.STag(), 0x1000, []byte("x")))
		require.Equal(t, make([]byte, 8), mem, "%s: nothing is placed", that)
	}
}

func TestDDP_71_72_TOAndEndMustBeInTheRegion(t *testing.T) {
	const top = math.MaxUint64
	for _, at := range []struct {
		that string
		base uint64
		to   uint64
		n    int
		want transport.Code // 0: legal
	}{
		{"all of it", 0x1000, 0x1000, 16, 0},
		{"the last octet", 0x1000, 0x100f, 1, 0},
		{"before the base", 0x1000, 0xfff, 1, transport.DDPBounds},
		{"from before the base into it", 0x1000, 0xfff, 2, transport.DDPBounds},
		{"at the end", 0x1000, 0x1010, 1, transport.DDPBounds},
		{"one octet too long", 0x1000, 0x1000, 17, transport.DDPBounds},
		{"over the end", 0x1000, 0x100f, 2, transport.DDPBounds},
		{"far away", 0x1000, 1 << 63, 1, transport.DDPBounds},
		{"TO + length wraps", 0x1000, top - 3, 8, transport.DDPWrap},
		{"wraps into the region", 0, top, 2, transport.DDPWrap},
		{"a region near the top", top - 16, top - 16, 16, 0},
	} {
		c := converse(t, 0)
		r, mem := c.region(16, func(o *stag.Options) { o.BaseTO = at.base })
		segment := tagged(true, r.STag(), at.to, octets(at.n))
		if at.want == 0 {
			c.sends(at.that, segment)
			require.Equal(t, octets(at.n), mem[at.to-at.base:][:at.n], at.that)
			continue
		}
		c.wantFault(at.that, at.want, segment)
		require.Equal(t, make([]byte, 16), mem, "%s: nothing is placed", at.that)
	}
}

// RFC 5041 has no code for a missing right; the code of a wrong PD is the nearest.
func TestDDP_78_MissingRightIsReportedAsNotAssociated(t *testing.T) {
	c := converse(t, 0)
	r, mem := c.region(8, func(o *stag.Options) { o.Access = stag.LocalWrite | stag.RemoteRead })
	c.wantFault("no right to write", transport.DDPNotAssociated, tagged(true, r.STag(), 0x1000, []byte("x")))
	require.Equal(t, make([]byte, 8), mem, "nothing is placed")

	c = converse(t, 0)
	c.access = stag.LocalWrite
	r, mem = c.region(8, func(o *stag.Options) { o.Access = stag.LocalWrite })
	c.sends("the upper layer says which right it takes", tagged(true, r.STag(), 0x1000, []byte("x")))
	require.Equal(t, byte('x'), mem[0])
}

func TestDDP_73_74_78_ReportHasHeaderCodeAndLength(t *testing.T) {
	c := converse(t, 0)
	c.post(0)
	segment := untagged(true, 0, 1, 0, octets(10))
	segment[0] |= 0x3c // Rsvd is reported as it came
	e := c.wantReport("a 28-octet Send for an empty buffer", transport.Code(0x1205), segment)
	require.Equal(t, segment[:UntaggedLen], e.Header, "the report has the header as received")
	require.Equal(t, 28, e.Len, "and the length of the whole segment")
	require.Equal(t, error(e), c.s.Err(), "it can be asked for later")
	require.Contains(t, e.Error(), "1/2/05")
	var f *transport.Fault
	require.ErrorAs(t, error(e), &f, "it is a Fault")
	segment[1] = 0
	require.NotEqual(t, segment[1], e.Header[1], "the report does not share memory with the segment")

	c = converse(t, 0)
	segment = unhex("c140 11223344 0000000000001000 0001020304050607")
	e = c.wantReport("a 22-octet Write to an unknown STag", transport.Code(0x1100), segment)
	require.Equal(t, segment[:TaggedLen], e.Header)
	require.Equal(t, 22, e.Len)
}

func TestDDP_32_73_SegmentShorterThanItsHeader(t *testing.T) {
	for n := range UntaggedLen {
		segment := untagged(true, 0, 1, 0, nil)[:n]
		c := converse(t, 0)
		c.post(0, make([]byte, 8))
		e := c.wantReport("untagged", transport.DDPLocalCatastrophic, segment)
		require.Nil(t, e.Header, "there is no header to report")
		require.Equal(t, n, e.Len)
	}
	for n := 1; n < TaggedLen; n++ {
		c := converse(t, 0)
		e := c.wantReport("tagged", transport.DDPLocalCatastrophic, tagged(true, 0, 0, nil)[:n])
		require.Nil(t, e.Header, "there is no header to report")
		require.Equal(t, n, e.Len)
	}
}

func TestDDP_75_LaterSegmentsAreDroppedSilently(t *testing.T) {
	c := converse(t, 4)
	r, mem := c.region(8, nil)
	c.post(0, make([]byte, 8))
	require.NoError(t, c.s.Segment(2, untagged(true, 0, 1, 0, nil)), "a good segment waits")
	first := c.wantReport("a bad one", transport.DDPInvalidSTag, tagged(true, 0, 0x1000, []byte("x")))
	c.sends("a good one", tagged(true, r.STag(), 0x1000, []byte("x")))
	c.sends("a bad one of another kind", untagged(true, 7, 1, 0, nil))
	require.NoError(t, c.s.Segment(99, nil), "one that is far ahead")
	require.Equal(t, make([]byte, 8), mem, "nothing more is placed")
	require.Empty(t, c.delivered, "or delivered")
	require.Equal(t, error(first), c.s.Err(), "the first error stays")
}

func TestDDP_53_62_63_76_FailureLeavesTheSendingHalfAlone(t *testing.T) {
	c := converse(t, 0)
	c.wantFault("the receiving half fails", transport.DDPQueue, untagged(true, 0, 1, 0, nil))
	l := &scriptLLP{mulpdu: 1500}
	var s Sender
	emit(t, &s, l, &Message{RsvdULP: 0x47, QN: 2, MSN: s.NextMSN(2), Source: plain([]byte("why"))})
	require.Len(t, l.sent, 1, "one more message can be sent")
	r, err := c.table.RegisterBuffer(&scriptBuffer{mem: octets(8), fail: errScripted}, stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	require.ErrorIs(t, s.Send(l, &Message{MSN: 1, Source: []stag.Span{{Region: r, Len: 8}}}), errScripted, "the sending half fails, too")
	require.Empty(t, l.ended, "DDP never ends the stream by itself")
}

func TestDDP_60_82_ErrorsOfTheUpperLayerEndTheStream(t *testing.T) {
	c := converse(t, 0)
	c.refuse = transport.Faultf(transport.RDMAPOpcode, "opcode 15")
	r, mem := c.region(8, nil)
	e := c.wantReport("refused before placing", transport.RDMAPOpcode, tagged(true, r.STag(), 0x1000, []byte("x")))
	require.Len(t, e.Header, TaggedLen, "with the header")
	require.Equal(t, make([]byte, 8), mem, "nothing is placed")

	c = converse(t, 0)
	c.refuse = transport.Faultf(transport.RDMAPOpcode, "opcode 15")
	c.bind(0)
	c.wantFault("its ruling comes before that of the queue", transport.RDMAPOpcode, untagged(true, 0, 1, 0, nil))

	c = converse(t, 0)
	c.refuseLast = errScripted
	e = c.wantReport("any other error is a local catastrophe", transport.DDPLocalCatastrophic, tagged(true, 0, 0, nil))
	require.ErrorIs(t, error(e), errScripted, "and the cause is kept")

	c = converse(t, 0)
	c.post(1, make([]byte, 28))
	c.queues[1].refuse = transport.Faultf(transport.RDMAPStreamCatastrophic, "a Read Request of 3 octets")
	e = c.wantReport("refused at delivery", transport.RDMAPStreamCatastrophic, untagged(true, 1, 1, 0, []byte("abc")))
	require.Len(t, e.Header, UntaggedLen)
}

func TestDDP_60_MemoryThatFailsEndsTheStream(t *testing.T) {
	c := converse(t, 0)
	r, err := c.table.RegisterBuffer(&scriptBuffer{mem: make([]byte, 8), fail: errScripted},
		stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	e := c.wantReport("a Buffer that cannot be written", transport.DDPLocalCatastrophic, tagged(true, r.STag(), 0, []byte("x")))
	require.ErrorIs(t, error(e), errScripted)

	c = converse(t, 0)
	r, mem := c.region(8, nil)
	q := c.bind(0)
	q.bufs = append(q.bufs, []stag.Span{{Region: r, Len: 8}})
	require.NoError(t, c.table.Invalidate(t.Context(), r))
	e = c.wantReport("a posted buffer that was invalidated", transport.DDPLocalCatastrophic, untagged(true, 0, 1, 0, []byte("x")))
	require.ErrorIs(t, error(e), stag.ErrInvalid)
	require.Equal(t, make([]byte, 8), mem, "nothing is placed")
}

func TestDDP_60_SourceThatFailsCutsTheMessage(t *testing.T) {
	table := stag.NewTable()
	file := &scriptBuffer{mem: octets(300)}
	r, err := table.RegisterBuffer(file, stag.Options{Access: stag.LocalWrite, Scope: stag.Scope{PD: 1}})
	require.NoError(t, err)
	var s Sender
	l := &scriptLLP{mulpdu: 118, capacity: 1}
	m := &Message{MSN: 1, Source: []stag.Span{{Region: r, Len: 300}}}
	done, err := s.Emit(l, m)
	require.NoError(t, err)
	require.False(t, done)
	file.fail = errScripted
	require.NoError(t, l.Flush(true))
	_, err = s.Emit(l, m)
	require.True(t, errors.Is(err, errScripted), "the error is that of the Buffer")
	require.EqualValues(t, 100, m.Sent(), "what was sent ends with a whole segment")
	require.Len(t, l.sent, 1)
	emit(t, &s, l, &Message{RsvdULP: 0x47, QN: 2, MSN: s.NextMSN(2)})
	require.Len(t, l.sent, 2, "an error message can follow")
}

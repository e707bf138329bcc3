package rdmap

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// The Sends that wait behind the first are sent in one loop, which must leave other
// work alone.
func TestRDMAP_8_17_43_SendsGoOutTogether(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "in place")
	inPlace := Request{ID: 3, Kind: KindSend, Spans: []stag.Span{span(r, 3, 5)}}
	parts := Request{ID: 6, Kind: KindSend, Spans: []stag.Span{span(r, 0, 2), span(r, 3, 1)}}
	target := sendOf(5, "i").with(Invalidating)
	target.Invalidate = 0x01020304
	c.post(sendOf(1, "a"), sendOf(2, "bb"), inPlace, sendOf(4, "s").with(Solicited), target, parts, sendOf(7, ""), sendOf(8, "z"))
	for i, want := range []string{
		"4143 00000000 00000000 00000001 00000000 61",
		"4143 00000000 00000000 00000002 00000000 6262",
		"4143 00000000 00000000 00000003 00000000 706c616365",
		"4145 00000000 00000000 00000004 00000000 73",
		"4144 01020304 00000000 00000005 00000000 69",
		"4143 00000000 00000000 00000006 00000000 696e70",
		"4143 00000000 00000000 00000007 00000000",
		"4143 00000000 00000000 00000008 00000000 7a",
	} {
		c.wantSegment("each as if it were alone", unhex(want))
		if i == 0 {
			c.wantDone("and all complete", "1 success", "2 success", "3 success", "4 success", "5 success", "6 success", "7 success", "8 success")
			require.EqualValues(t, 6, c.s.Stats().Out[OpSend].Messages)
			require.EqualValues(t, 12, c.s.Stats().Out[OpSend].Octets)
		}
	}
	require.NoError(t, c.table.Close(t.Context(), r), "nothing is held any more")
}

// A Send that is longer than a segment, and one whose region was invalidated, are not for
// the loop.
func TestRDMAP_82_SendAfterOthersThatCannotBeSent(t *testing.T) {
	c := converse(t, nil)
	c.llp.mulpdu = 18 + 4
	r, _ := c.region(8, nil)
	c.post(sendOf(1, "a"), sendOf(2, "long Send"), sendOf(3, "b"), Request{ID: 4, Kind: KindSend, Spans: []stag.Span{span(r, 0, 1)}}, sendOf(5, "c"))
	require.NoError(t, c.table.Invalidate(t.Context(), r))
	require.ErrorIs(t, c.flush(), stag.ErrInvalid)
	require.Len(t, c.llp.sent, 5)
	c.wantDone("what came before it is out", "1 success", "2 success", "3 success")
}

// What becomes due while Sends are sent together does not wait for the last of them.
func TestRDMAP_85_111_SendsThatGoOutTogetherGiveWay(t *testing.T) {
	start := func(then func(c *conversation)) *conversation {
		c := converse(t, nil)
		for i := range uint64(8) {
			c.post(sendOf(i, "x"))
		}
		n := 0
		c.llp.before = func() {
			if n++; n == 3 {
				then(c)
			}
		}
		return c
	}
	c := start(func(c *conversation) { c.sends("a Read Request", readRequestOf(1, ReadRequest{Sink: target})) })
	require.NoError(t, c.flush())
	require.Equal(t, tagged(OpReadResponse, true, target, ""), c.llp.sent[3], "the response goes before the Sends that are left")
	require.Len(t, c.llp.sent, 9)

	c = start(func(c *conversation) {
		require.True(t, c.s.Terminate(transport.Faultf(transport.RDMAPOpcode, "wrong")))
	})
	require.NoError(t, c.flush())
	require.LessOrEqual(t, len(c.llp.sent), 5, "at most the Send that was next goes before the Terminate")
	require.Equal(t, terminateOf(bare(transport.RDMAPOpcode)), c.llp.sent[len(c.llp.sent)-1], "and nothing after it")
}

// A peer that refuses one of the Sends that went out together names it by its number.
func TestRDMAP_78_PeerNamesOneOfTheSendsThatWentOutTogether(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, "a"), sendOf(2, "b"), sendOf(3, "c"))
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	c.sends("its Terminate", terminateOf(blaming(transport.DDPNoBuffer, c.llp.sent[1])))
	c.s.End()
	c.wantDone("the second found no receive", "1 flushed", "2 no receive posted by the peer 1202", "3 flushed")
}

// Sends from regions, batches that are full before the last of them, and one that is longer
// than a segment: what did not go holds nothing.
func TestRDMAP_43_SendsThatAreLeftForTheNextBatch(t *testing.T) {
	for _, digest := range []bool{false, true} {
		c := converse(t, nil)
		c.llp.capacity, c.llp.mulpdu, c.llp.digest = 2, 18+4, digest
		own, _ := c.region(16, func(o *stag.Options) { o.Access = stag.LocalWrite })
		open, _ := c.region(16, nil)
		for _, source := range []stag.Span{span(own, 0, 4), span(own, 1, 4), span(own, 2, 4), span(own, 3, 5), span(open, 0, 4), span(own, 5, 4)} {
			c.post(Request{Kind: KindSend, Spans: []stag.Span{source}})
		}
		require.NoError(t, c.flush())
		require.Equal(t, []bool{false, false, false, false, false, digest, false}, c.llp.staged, "only what the peer may change under a digest is copied")
		for _, sent := range c.llp.sent {
			require.LessOrEqual(t, len(sent), 18+4, "no segment is longer than the MULPDU")
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, c.table.Close(soon, own), "nothing is held any more")
		require.NoError(t, c.table.Close(soon, open))
	}
}

// arrivals is the segments that come together.
type arrivals [][]byte

func (a *arrivals) Next() []byte {
	if len(*a) == 0 {
		return nil
	}
	next := (*a)[0]
	*a = (*a)[1:]
	return next
}

func TestRDMAP_44_51_53_SendsComeTogether(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(24, nil)
	bound, _ := c.region(8, nil)
	for i := range 6 {
		c.buffers = append(c.buffers, []stag.Span{span(r, 4*i, 4)})
	}
	run := &arrivals{
		untagged(OpSend, QNSend, 1, "one"), untagged(OpSend, QNSend, 2, "two"), untagged(OpSendSolicited, QNSend, 3, "!"), untagged(OpSendSolicited, QNSend, 4, "!!"),
		invalidating(OpSendInvalidate, 5, bound.STag(), "bye"),
	}
	require.NoError(t, c.s.Segments(0, run))
	c.s.BatchDone()
	c.wantReceived("those of one kind, then those of another, and one that invalidates alone",
		Received{Opcode: OpSend, Len: 3}, Received{Opcode: OpSend, Len: 3},
		Received{Opcode: OpSendSolicited, Len: 1, Solicited: true}, Received{Opcode: OpSendSolicited, Len: 2, Solicited: true},
		Received{Opcode: OpSendInvalidate, Len: 3, Invalidated: true, STag: bound.STag()})
	require.Equal(t, []int{2, 2}, c.runs, "the first four in two runs")
	require.False(t, bound.Valid())
	require.Equal(t, "one\x00two\x00!\x00\x00\x00!!\x00\x00bye\x00", string(mem[:20]))
	require.EqualValues(t, 2, c.s.Stats().In[OpSend].Messages)
	require.EqualValues(t, 3, c.s.Stats().In[OpSendSolicited].Octets)
}

// Writes, Sends in runs and alone, and what they are between, in one batch: all in the
// sender's order.
func TestRDMAP_44_46_WritesAndSendsComeTogether(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, nil)
	at := RemoteAddr{sink.STag(), 0x1000}
	buffers, _ := c.region(32, nil)
	for i := range 4 {
		c.buffers = append(c.buffers, []stag.Span{span(buffers, 4*i, 4)})
	}
	batch := &arrivals{
		tagged(OpWrite, true, at, "1"), untagged(OpSend, QNSend, 1, "a"), untagged(OpSend, QNSend, 2, "b"),
		tagged(OpWrite, false, at, "2"), tagged(OpWrite, true, at, "3"), immediate(3, "imm.imm."), untagged(OpSend, QNSend, 4, "d"),
	}
	require.NoError(t, c.s.Segments(0, batch))
	c.s.BatchDone()
	require.Empty(t, *batch)
	require.Equal(t, "3", string(mem[:1]), "the last Write counts")
	require.Equal(t, []int{2, 1}, c.runs, "Sends in a row are one run")
	require.Len(t, c.received, 4)
	require.EqualValues(t, 2, c.s.Stats().In[OpWrite].Messages)
	require.NoError(t, c.s.Segments(0, &arrivals{tagged(OpWrite, true, at, "9")}), "the seventh was the last")
	require.Equal(t, "3", string(mem[:1]))
	require.NoError(t, c.s.Segments(7, &arrivals{tagged(OpWrite, true, at, "8")}), "so many are counted")
	require.Equal(t, "8", string(mem[:1]))
}

// A presented is a batch that presents again what was held back, as transport.SegmentBatch
// says.
type presented struct {
	segments [][]byte
	seq      uint64 // of the first one that is not taken
	lent     bool
}

func (p *presented) Next() []byte {
	if p.lent {
		p.lent = false
		p.seq++
		p.segments = p.segments[1:]
	}
	if len(p.segments) == 0 {
		return nil
	}
	p.lent = true
	return p.segments[0]
}

func TestRDMAP_44_46_SegmentThatIsHeldBackIsPresentedAgain(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, nil)
	at := RemoteAddr{sink.STag(), 0x1000}
	c.missing = transport.ErrStall
	c.receive(1)
	batch := &presented{segments: [][]byte{
		tagged(OpWrite, true, at, "1"), untagged(OpSend, QNSend, 1, "a"), untagged(OpSend, QNSend, 2, "b"), tagged(OpWrite, true, at, "2"),
	}}
	require.ErrorIs(t, c.s.Segments(0, batch), transport.ErrStall, "there is one receive")
	require.EqualValues(t, 2, batch.seq, "two are taken")
	require.Equal(t, "1", string(mem[:1]), "and what is behind is not")
	batch.lent = false
	require.ErrorIs(t, c.s.Segments(2, batch), transport.ErrStall, "there is still none")
	batch.lent = false
	c.receive(1)
	require.NoError(t, c.s.Segments(2, batch))
	require.EqualValues(t, 4, batch.seq)
	require.Equal(t, "2", string(mem[:1]))
	require.Len(t, c.received, 2)
}

package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestRDMAP_15_18_WriteIsOneTaggedMessageToOneSTag(t *testing.T) {
	c := converse(t, nil)
	source, mem := c.region(3000, nil)
	copy(mem, octets(3000))
	c.post(Request{ID: 1, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(source, 2000, 1000), span(source, 0, 1000)}})
	all := octets(3000)[2000:] + octets(3000)[:1000]
	c.wantSegment("the list is gathered", tagged(OpWrite, false, target, all[:1486]))
	c.wantSegment("to one run of octets", tagged(OpWrite, true, RemoteAddr{target.STag, target.TO + 1486}, all[1486:]))
	c.wantIdle("by one message")
	c.wantDone("it completes once it is out", "1 success")
}

func TestRDMAP_16_20_WriteIsPlacedAndNotReported(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(16, nil)
	c.receive(16)
	c.sends("a Write may start anywhere", tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1003}, "hello"))
	require.Equal(t, "\x00\x00\x00hello\x00", string(mem[:9]))
	require.Empty(t, c.received, "no message is delivered")
	require.Len(t, c.buffers, 1, "no receive is used")
	require.Empty(t, c.done, "nothing completes")
	c.wantIdle("nothing is answered")
}

func TestRDMAP_17_48_104_MessagesGoOutInPostOrder(t *testing.T) {
	c := converse(t, nil)
	c.post(writeOf(1, target, "a"), sendOf(2, "b"))
	c.post(writeOf(3, target, "c"), sendOf(4, "d"))
	c.post(sendOf(5, "e").with(Solicited), sendOf(6, "f"), sendOf(7, octets(1483)), sendOf(8, "g"))
	c.wantSegment("first", tagged(OpWrite, true, target, "a"))
	c.wantSegment("second", untagged(OpSend, QNSend, 1, "b"))
	c.wantSegment("third", tagged(OpWrite, true, target, "c"))
	c.wantSegment("fourth", untagged(OpSend, QNSend, 2, "d"))
	c.wantSegment("Sends of different kinds, too", untagged(OpSendSolicited, QNSend, 3, "e"))
	c.wantSegment("sixth", untagged(OpSend, QNSend, 4, "f"))
	require.Len(t, c.llp.sent, 3, "the seventh, of two segments, and the eighth")
	require.Equal(t, untagged(OpSend, QNSend, 6, "g"), c.llp.sent[2])
	c.wantDone("and they complete in that order", "1 success", "2 success", "3 success", "4 success",
		"5 success", "6 success", "7 success", "8 success")
}

func TestRDMAP_19_ZeroLengthWrite(t *testing.T) {
	c := converse(t, nil)
	c.post(writeOf(1, RemoteAddr{}, ""))
	c.wantSegment("one segment (V4)", unhex("c140 00000000 0000000000000000"))
	c.wantIdle("and no more")
	c.sends("from a peer, the STag means nothing", tagged(OpWrite, true, RemoteAddr{0xffffffff, ^uint64(0)}, ""))
}

func TestRDMAP_21_83_InvalidWriteEndsTheStream(t *testing.T) {
	for what, x := range map[string]struct {
		change func(*stag.Options)
		at     uint64
		code   transport.Code
	}{
		"of another PD":        {func(o *stag.Options) { o.Scope = carol }, 0x1000, transport.DDPNotAssociated},
		"of another stream":    {func(o *stag.Options) { o.Scope = bob }, 0x1000, transport.DDPNotAssociated},
		"without RemoteWrite":  {func(o *stag.Options) { o.Access = stag.LocalWrite | stag.RemoteRead }, 0x1000, transport.DDPNotAssociated},
		"an octet beyond":      {nil, 0x1001, transport.DDPBounds},
		"an octet before":      {nil, 0xfff, transport.DDPBounds},
		"beyond the last TO":   {nil, ^uint64(3), transport.DDPWrap},
		"invalidated (local)":  {nil, 0, transport.DDPInvalidSTag},
		"without any such TO ": {nil, 1 << 40, transport.DDPBounds},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			r, mem := c.region(8, x.change)
			if x.code == transport.DDPInvalidSTag {
				require.NoError(t, c.table.Invalidate(t.Context(), r))
			}
			segment := tagged(OpWrite, true, RemoteAddr{r.STag(), x.at}, octets(8))
			c.wantRefused("the Terminate has the DDP header and no RDMA header", segment, blaming(x.code, segment))
			require.Equal(t, make([]byte, 8), mem, "nothing was placed")
		})
	}
}

func TestRDMAP_97_NothingIsPlacedAfterAnError(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(16, nil)
	c.wantFault("a Write that is half outside", transport.DDPBounds, tagged(OpWrite, true, RemoteAddr{r.STag(), 0x100c}, octets(8)))
	c.sends("later segments are dropped silently", tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, octets(8)))
	require.Equal(t, make([]byte, 16), mem, "nothing was placed")
}

func TestRDMAP_118_AnErroneousStreamCarriesNoMoreData(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(16, nil)
	c.receive(16)
	require.True(t, c.s.Terminate(&transport.Fault{Code: transport.MPACRC}))
	c.sends("everything is dropped",
		tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, octets(8)),
		untagged(OpSend, QNSend, 1, "hello"),
		readRequestOf(1, ReadRequest{}),
		[]byte{0})
	batch := &arrivals{untagged(OpSend, QNSend, 1, ""), tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, octets(8)), untagged(OpSend, QNSend, 2, "")}
	require.NoError(t, c.s.Segments(0, batch))
	require.Empty(t, *batch, "what comes together, too")
	require.Equal(t, make([]byte, 16), mem)
	require.Empty(t, c.received)
	c.wantTerminate("only the Terminate goes out", bare(transport.MPACRC))
	n, err := c.tryPost(sendOf(1, ""))
	require.ErrorIs(t, err, ErrEnded, "nothing more can be posted")
	require.Zero(t, n)
}

// A Write whose source is invalidated before its turn is not sent.
func TestRDMAP_82_ErrorWhileMakingAMessage(t *testing.T) {
	c := converse(t, nil)
	source, _ := c.region(8, nil)
	c.post(sendOf(1, "before"), Request{ID: 2, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(source, 0, 8)}}, sendOf(3, "behind"))
	require.NoError(t, c.table.Invalidate(t.Context(), source))
	err := c.flush()
	require.ErrorIs(t, err, stag.ErrInvalid)
	require.True(t, c.s.Terminate(err))
	c.wantSegment("what was ahead is sent", untagged(OpSend, QNSend, 1, "before"))
	c.wantTerminate("then a Terminate instead of the message, without headers", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("one completes with its error, those after it are flushed", "1 success", "2 local protection error", "3 flushed")
}

func TestRDMAP_82_SourceThatCannotBeRead(t *testing.T) {
	c := converse(t, nil)
	buffer := &brokenBuffer{size: 3000}
	source, err := c.table.RegisterBuffer(buffer, stag.Options{Access: stag.LocalWrite, Scope: alice})
	require.NoError(t, err)
	memory, _ := c.region(1486, nil)
	c.post(Request{ID: 1, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(memory, 0, 1486), span(source, 0, 3000)}})
	err = c.flush()
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, Traffic{Octets: 1486}, c.s.Stats().Out[OpWrite], "what precedes it has gone out, and counts")
	require.True(t, c.s.Terminate(err))
	c.wantSegment("what precedes it", tagged(OpWrite, false, target, string(make([]byte, 1486))))
	c.wantTerminate("the stream's own fault", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("the request tells", "1 local operation error")
	require.NoError(t, c.table.Close(t.Context(), source), "nothing refers to the region any more")
}

func TestRDMAP_105_NotCompleteBeforeItIsOut(t *testing.T) {
	c := converse(t, nil)
	source, _ := c.region(8, nil)
	c.post(Request{ID: 1, Kind: KindSend, Spans: []stag.Span{span(source, 0, 8)}})
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.Empty(t, c.done, "in the batch is not out")
	c.s.Flushed()
	c.wantDone("but after the flush it is", "1 success")
}

func TestSourceIsHeldUntilItIsOut(t *testing.T) {
	c := converse(t, nil)
	source, _ := c.region(8, nil)
	c.post(Request{ID: 1, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(source, 0, 8)}})
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.NoError(t, c.table.Invalidate(t.Context(), source), "an invalidation does not wait for the network")
	require.Error(t, c.table.Close(done(t), source), "a close does")
	c.s.Flushed()
	require.NoError(t, c.table.Close(done(t), source), "until the octets are out")
}

func TestMessageCutByAFullBatchGoesOn(t *testing.T) {
	c := converse(t, nil)
	c.llp.capacity = 2
	source, mem := c.region(5000, nil)
	copy(mem, octets(5000))
	c.post(Request{ID: 1, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(source, 0, 5000)}}, sendOf(2, "x"))
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more, "the batch is full")
	require.True(t, c.s.Pending())
	require.Len(t, c.llp.sent, 2)
	require.Equal(t, Traffic{Octets: 2 * 1486}, c.s.Stats().Out[OpWrite], "what is in the batch counts")
	c.s.Flushed()
	require.Empty(t, c.done, "half a message does not complete")
	require.NoError(t, c.s.Flush(c.llp))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 5)
	h, err := ddp.ParseTagged(c.llp.sent[2])
	require.NoError(t, err)
	require.Equal(t, target.TO+2*1486, h.TO, "the message goes on where it was")
	c.wantDone("then both complete", "1 success", "2 success")
	require.Equal(t, Traffic{Messages: 1, Octets: 5000}, c.s.Stats().Out[OpWrite])
}

// TestFillTellsOfMoreWhereThereIsMore: the caller of Fill starts a goroutine for the rest.
func TestFillTellsOfMoreWhereThereIsMore(t *testing.T) {
	c := converse(t, nil)
	source, _ := c.region(quantum, nil)
	write := func(id uint64) Request {
		return Request{ID: id, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(source, 0, quantum)}}
	}
	c.post(write(1), write(2))
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more, "another Write")
	require.NoError(t, c.s.Flush(c.llp))
	c.s.Flushed()
	c.wantDone("the first has had its turn", "1 success")
	more, err = c.s.Fill(c.llp)
	require.NoError(t, err)
	require.False(t, more, "however much it was")
	require.NoError(t, c.s.Flush(c.llp))
	c.s.Flushed()
	c.wantDone("and the second", "2 success")
}

// Writes that wait behind one another are sent in one loop, with the Sends among them.
func TestRDMAP_15_17_18_WritesGoOutTogether(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "in place")
	inPlace := Request{ID: 2, Kind: KindWrite, Remote: RemoteAddr{0x0a0b0c0d, 0x1112131415161718}, Spans: []stag.Span{span(r, 3, 5)}}
	parts := Request{ID: 4, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(r, 0, 2), span(r, 3, 1)}}
	c.post(writeOf(1, target, "a"), inPlace, sendOf(3, "s"), parts, writeOf(5, target, "long "+octets(1500)), writeOf(6, target, ""), writeOf(7, target, "z"))
	c.wantSegment("each as if it were alone", tagged(OpWrite, true, target, "a"))
	c.wantDone("and all complete", "1 success", "2 success", "3 success", "4 success", "5 success", "6 success", "7 success")
	require.EqualValues(t, 6, c.s.Stats().Out[OpWrite].Messages)
	require.EqualValues(t, 1+5+3+1505+0+1, c.s.Stats().Out[OpWrite].Octets)
	c.wantSegment("from where it is", unhex("c140 0a0b0c0d 1112131415161718 706c616365"))
	c.wantSegment("in its turn", untagged(OpSend, QNSend, 1, "s"))
	c.wantSegment("a list is for others", tagged(OpWrite, true, target, "inp"))
	all := "long " + octets(1500)
	c.wantSegment("and so is what takes two segments", tagged(OpWrite, false, target, all[:1486]))
	c.wantSegment("the rest", tagged(OpWrite, true, RemoteAddr{target.STag, target.TO + 1486}, all[1486:]))
	c.wantSegment("and what is nothing", tagged(OpWrite, true, target, ""))
	c.wantSegment("the last", tagged(OpWrite, true, target, "z"))
	require.NoError(t, c.table.Close(t.Context(), r), "nothing is held any more")
}

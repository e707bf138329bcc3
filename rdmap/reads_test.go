package rdmap

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// asking is the segment of the Read Request of one octet, to the k-th octet of a sink.
func asking(msn ddp.MSN, sink *stag.Region, k int) []byte {
	return readRequestOf(msn, ReadRequest{Sink: RemoteAddr{sink.STag(), 0x1000 + uint64(k)}, Size: 1, Src: target})
}

// The Reads that wait behind the first are sent in one loop, which must leave other work
// alone.
func TestRDMAP_23_26_104_ReadsGoOutTogether(t *testing.T) {
	c := converse(t, func(o *Config) { o.ORD = 5 })
	sink, _ := c.region(8, nil)
	fenced := readOf(8, target, span(sink, 5, 1)).with(ReadFence)
	c.post(readOf(1, target, span(sink, 0, 1)), readOf(2, target, span(sink, 1, 1)), readOf(3, RemoteAddr{}),
		readOf(4, target, span(sink, 2, 1)), sendOf(5, "s"), readOf(6, target, span(sink, 3, 1)), readOf(7, target, span(sink, 4, 1)), fenced)
	c.wantSegment("each as if it were alone", asking(1, sink, 0))
	c.wantSegment("in post order", asking(2, sink, 1))
	c.wantSegment("also one for nothing", readRequestOf(3, ReadRequest{}))
	c.wantSegment("and what follows it", asking(4, sink, 2))
	c.wantSegment("a Send in its turn", untagged(OpSend, QNSend, 1, "s"))
	c.wantSegment("as many as the peer takes", asking(5, sink, 3))
	c.wantIdle("and no more")
	c.sends("until one is answered", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "a"))
	c.wantDone("which completes", "1 success")
	c.wantSegment("then the next", asking(6, sink, 4))
	require.EqualValues(t, 6, c.s.Stats().Out[OpReadRequest].Messages)
	require.EqualValues(t, 6*28, c.s.Stats().Out[OpReadRequest].Octets)
	for k := range 4 {
		if k == 1 {
			c.sends("the empty one", tagged(OpReadResponse, true, RemoteAddr{}, ""))
		}
		c.wantIdle("the fence holds")
		c.sends("all are answered", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1001 + uint64(k)}, "b"))
	}
	c.wantDone("in order", "2 success", "3 success", "4 success", "5 success", "6 success", "7 success")
	c.wantSegment("one with a fence when all are", asking(7, sink, 5))
}

// A Read whose sink is INVALID is not for the loop.
func TestRDMAP_26_ReadAfterOthersThatCannotBeSent(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(8, nil)
	dead, _ := c.region(8, nil)
	require.NoError(t, c.table.Invalidate(t.Context(), dead))
	c.post(readOf(1, target, span(sink, 0, 1)), readOf(2, target, span(sink, 1, 1)), readOf(3, target, span(dead, 0, 1)), readOf(4, target, span(sink, 2, 1)))
	require.ErrorIs(t, c.flush(), stag.ErrInvalid)
	c.wantRequests("what came before it is out", asking(1, sink, 0), asking(2, sink, 1))
	c.s.End()
	c.wantDone("and it is what the stream ends on account of", "1 flushed", "2 flushed", "3 local protection error", "4 flushed")
}

// wantRequests checks what was sent.
func (c *conversation) wantRequests(that string, want ...[]byte) {
	c.Helper()
	require.Equal(c, want, c.llp.sent, that)
	c.llp.sent = nil
}

// Requests that came together are answered in one loop, which leaves alone what is
// long, empty or atomic.
func TestRDMAP_27_34_35_39_ResponsesGoOutTogether(t *testing.T) {
	c := converse(t, func(o *Config) { o.IRD = 8 })
	r, mem := c.region(4000, func(o *stag.Options) { o.Access |= stag.RemoteAtomic })
	copy(mem, octets(4000))
	read := func(msn ddp.MSN, off uint64, n uint32) []byte {
		return readRequestOf(msn, ReadRequest{Sink: RemoteAddr{7, 1<<40 + off}, Size: n, Src: RemoteAddr{r.STag(), 0x1000 + off}})
	}
	c.sends("requests", read(1, 0, 1), read(2, 3, 4), read(3, 5, 0), read(4, 8, 2), read(5, 9, 1500), read(6, 1, 1))
	c.sends("and one that is atomic", atomicRequestOf(7, AtomicRequest{ID: 5, At: RemoteAddr{r.STag(), 0x1000 + 16}}), read(8, 2, 1))
	_, irq := c.s.Unfinished()
	require.Equal(t, 8, irq)
	answer := func(off, n int, last bool) []byte {
		return tagged(OpReadResponse, last, RemoteAddr{7, 1<<40 + uint64(off)}, octets(4000)[off:off+n])
	}
	c.wantSegment("each as if it were alone", answer(0, 1, true))
	_, irq = c.s.Unfinished()
	require.Zero(t, irq, "and all buffers are free")
	c.wantSegment("in their order", answer(3, 4, true))
	c.wantSegment("also one of nothing", answer(5, 0, true))
	c.wantSegment("and what follows it", answer(8, 2, true))
	c.wantSegment("what takes two segments", answer(9, 1486, false))
	c.wantSegment("the rest", answer(9+1486, 14, true))
	c.wantSegment("and what follows that", answer(1, 1, true))
	require.Len(t, c.llp.sent, 2)
	c.llp.sent = c.llp.sent[1:] // the atomic one
	c.wantSegment("the last", answer(2, 1, true))
	require.EqualValues(t, 7, c.s.Stats().Out[OpReadResponse].Messages)
	require.EqualValues(t, 1+4+0+2+1500+1+1, c.s.Stats().Out[OpReadResponse].Octets)
	require.NoError(t, c.table.Close(t.Context(), r), "nothing is pinned any more")
}

// A response whose source has been invalidated meanwhile is not for the loop.
func TestRDMAP_70_93_ResponseAfterOthersThatCannotBeSent(t *testing.T) {
	c := converse(t, nil)
	c.llp.digest = true
	r, mem := c.region(8, func(o *stag.Options) { o.Access = stag.RemoteRead })
	copy(mem, octets(8))
	dead, _ := c.region(8, nil)
	first := ReadRequest{Sink: target, Size: 1, Src: RemoteAddr{r.STag(), 0x1000}}
	second := ReadRequest{Sink: target, Size: 1, Src: RemoteAddr{dead.STag(), 0x1000}}
	c.sends("requests", readRequestOf(1, first), readRequestOf(2, second))
	require.NoError(t, c.table.Invalidate(t.Context(), dead))
	err := c.flush()
	require.Error(t, err)
	require.Equal(t, []bool{true}, c.llp.staged, "the source may change at any time, and the digest must not")
	require.True(t, c.s.Terminate(err))
	c.wantSegment("what came before is answered", tagged(OpReadResponse, true, target, octets(8)[:1]))
	want := blaming(transport.RDMAPInvalidSTag, readRequestOf(2, second))
	want.RDMAHeader = second.Append(nil)
	c.wantTerminate("and the Terminate names the other", want)
}

// If our own requests wait, too, the responses are not sent together: both have their turns.
func TestResponsesLeaveRoomForRequests(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(1000, nil)
	for msn := range ddp.MSN(4) {
		c.sends("requests", readRequestOf(msn+1, ReadRequest{Sink: target, Size: 1000, Src: RemoteAddr{r.STag(), 0x1000}}))
	}
	c.post(writeOf(1, target, octets(1000)), writeOf(2, target, octets(1000)), writeOf(3, target, octets(1000)))
	require.NoError(t, c.flush())
	var turns []Opcode
	for _, g := range c.llp.sent {
		turns = append(turns, opcodeOf(g[1]))
	}
	require.Equal(t, []Opcode{OpReadResponse, OpWrite, OpReadResponse, OpWrite, OpReadResponse, OpWrite, OpReadResponse}, turns)
}

// TestVERBS_65_LocalFenceInARun: a request with the fence waits until all before it have
// completed, however many are sent together.
func TestVERBS_65_LocalFenceInARun(t *testing.T) {
	for what, fence := range map[string]Flags{"local": LocalFence, "read": ReadFence, "both": LocalFence | ReadFence} {
		c := converse(t, func(o *Config) { o.ORD = 8 })
		sink, _ := c.region(16, nil)
		c.post(readOf(1, target, span(sink, 0, 1)), readOf(2, target, span(sink, 1, 1)),
			readOf(3, target, span(sink, 2, 1)).with(fence), readOf(4, target, span(sink, 3, 1)))
		require.NoError(t, c.flush())
		c.wantRequests("the fence holds "+what, asking(1, sink, 0), asking(2, sink, 1))
		c.sends("an answer", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "a"))
		c.wantIdle("is not enough")
		c.sends("but all of them are", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1001}, "b"))
		require.NoError(t, c.flush())
		c.wantRequests("what was after it goes together", asking(3, sink, 2), asking(4, sink, 3))
	}

	c := converse(t, nil)
	c.post(sendOf(1, "a"), writeOf(2, target, "b"), sendOf(3, "c").with(LocalFence), sendOf(4, "d"))
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	c.wantRequests("the batch ends before a Send with the fence",
		untagged(OpSend, QNSend, 1, "a"), tagged(OpWrite, true, target, "b"))
	require.NoError(t, c.s.Flush(c.llp))
	_, err = c.s.Fill(c.llp)
	require.NoError(t, err)
	require.Empty(t, c.llp.sent, "which has not completed while it is not known to be out")
	c.s.Flushed()
	c.wantDone("now it is", "1 success", "2 success")
	require.NoError(t, c.flush())
	c.wantRequests("and the rest follows", untagged(OpSend, QNSend, 2, "c"), untagged(OpSend, QNSend, 3, "d"))

	c = converse(t, nil)
	sink, _ := c.region(16, nil)
	c.post(readOf(1, target, span(sink, 0, 1)), writeOf(2, target, "x").with(LocalFence))
	require.NoError(t, c.flush())
	c.wantRequests("a Write after a Read", asking(1, sink, 0))
	c.sends("waits for the answer", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "a"))
	c.wantSegment("and goes", tagged(OpWrite, true, target, "x"))
}

// TestRDMAP_125_SourceOfAResponseIsPinnedUntilTheFlush, in a run and by itself. What the
// batch refers to cannot be revoked under it.
func TestRDMAP_125_SourceOfAResponseIsPinnedUntilTheFlush(t *testing.T) {
	for what, n := range map[string]uint32{"short, in a run": 8, "long, by itself": 4000} {
		c := converse(t, nil)
		r, mem := c.region(4000, nil)
		copy(mem, octets(4000))
		c.sends("a request", readRequestOf(1, ReadRequest{Sink: target, Size: n, Src: RemoteAddr{r.STag(), 0x1000}}))
		_, err := c.s.Fill(c.llp)
		require.NoError(t, err)
		require.NotEmpty(t, c.llp.sent, what)
		require.ErrorIs(t, c.table.Invalidate(done(t), r), context.Canceled, what)
		require.NoError(t, c.s.Flush(c.llp))
		require.NoError(t, c.table.Invalidate(done(t), r), "%s: and not for longer", what)
	}
}

// TestRDMAP_29_ResponseIsStagedExactlyUnderADigest, in a run and by itself. Others may
// change the source at any time, and the digest must match what is sent.
func TestRDMAP_29_ResponseIsStagedExactlyUnderADigest(t *testing.T) {
	for _, digest := range []bool{true, false} {
		for _, n := range []uint32{8, 4000} {
			c := converse(t, nil)
			c.llp.digest = digest
			r, mem := c.region(4000, func(o *stag.Options) { o.Access = stag.RemoteRead })
			copy(mem, octets(4000))
			c.sends("a request", readRequestOf(1, ReadRequest{Sink: target, Size: n, Src: RemoteAddr{r.STag(), 0x1000}}))
			require.NoError(t, c.flush())
			require.NotEmpty(t, c.llp.staged)
			for _, staged := range c.llp.staged {
				require.Equal(t, digest, staged, "%d octets", n)
			}
		}
	}
}

// TestReportOfARequestHasTheLengthOfItsSegment, of the last one if there are several.
func TestReportOfARequestHasTheLengthOfItsSegment(t *testing.T) {
	in := &Inbound{n: 50}
	in.head.MO = 30
	var e *ddp.SegmentError
	require.ErrorAs(t, in.refuse(transport.Faultf(transport.RDMAPOpcode, "no")), &e)
	require.Equal(t, ddp.UntaggedLen+20, e.Len)
}

package rdmap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 7306 section 6: Immediate Data.

func TestEXT_3_4_9_10_12_ImmediateDataOnTheWire(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, "s"), immediateOf(2, "\x01\x02\x03\x04\x05\x06\x07\x08"), immediateOf(3, "").with(Solicited), sendOf(4, ""))
	c.wantSegment("a Send", untagged(OpSend, QNSend, 1, "s"))
	c.wantSegment("untagged, QN 0, MSN shared with Sends, eight octets and no more",
		unhex("41 48 00000000 | 00000000 00000002 00000000 | 01 02 03 04 05 06 07 08"))
	c.wantSegment("with Solicited Event",
		unhex("41 49 00000000 | 00000000 00000003 00000000 | 00 00 00 00 00 00 00 00"))
	c.wantSegment("the next Send", untagged(OpSend, QNSend, 4, ""))
	c.wantDone("they complete as Sends do", "1 success", "2 success", "3 success", "4 success")
	out := c.s.Stats().Out
	require.Equal(t, Traffic{Messages: 1, Octets: 8}, out[OpImmediate])
	require.Equal(t, Traffic{Messages: 1, Octets: 8}, out[OpImmediateSolicited])
}

func TestEXT_11_16_21_ImmediateDataGoesIntoTheCompletion(t *testing.T) {
	for _, imm := range []string{"\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff", "\x80\x00\x00\x00\x00\x00\x00\x01", "12345678"} {
		c := converse(t, nil)
		first, second := c.receive(16), c.receive(0)
		third := c.receive(16)
		c.sends("two of them, and a Send", immediate(1, imm), untagged(OpImmediateSolicited, QNSend, 2, imm), untagged(OpSend, QNSend, 3, "payload"))
		want := Received{Opcode: OpImmediate}
		copy(want.Imm[:], imm)
		solicited := want
		solicited.Opcode, solicited.Solicited = OpImmediateSolicited, true
		c.wantReceived("the octets as they were sent", want, solicited, Received{Opcode: OpSend, Len: 7})
		require.Empty(t, c.buffers, "each has taken one receive, also one without memory")
		require.Equal(t, make([]byte, 16), first, "and leaves the memory of the receive alone")
		require.Empty(t, second)
		require.Equal(t, "payload", string(third[:7]))
	}
}

// TestImmediateDataThatComeEarlyAreKept: however many more come before their turn.
func TestImmediateDataThatComeEarlyAreKept(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 16 })
	var want []Received
	for i := range 9 {
		c.receive(0)
		w := Received{Opcode: OpImmediate}
		copy(w.Imm[:], fmt.Sprintf("number %d", i+1))
		want = append(want, w)
	}
	for _, i := range []uint64{1, 2, 3, 8, 7, 4, 6, 5} {
		require.NoError(t, c.take(i, immediate(ddp.MSN(i+1), string(want[i].Imm[:]))))
	}
	c.wantReceived("nothing before its turn")
	require.NoError(t, c.take(0, immediate(1, string(want[0].Imm[:]))))
	c.wantReceived("all in order", want...)
}

// TestImmediateDataAreCopied: the octets of the next are put in the same place.
func TestImmediateDataAreCopied(t *testing.T) {
	c := converse(t, nil)
	c.post(immediateOf(1, "12345678"), immediateOf(2, "abcdefgh"))
	require.NoError(t, c.flush())
	require.Equal(t, []bool{true, true}, c.llp.staged)
}

func TestEXT_3_InvalidateFieldOfImmediateDataIsIgnored(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	c.receive(0)
	h := ddp.UntaggedHeader{Last: true, RsvdULP: OpImmediate.control(), RsvdULPWord: uint32(r.STag()), QN: QNSend, MSN: 1}
	c.sends("octets 2..5 are not zero", append(h.Append(nil), "12345678"...))
	require.Len(t, c.received, 1)
	require.True(t, r.Valid(), "nothing was invalidated")
}

func TestEXT_13_67_ImmediateDataOfAnotherLength(t *testing.T) {
	for n, code := range map[int]transport.Code{
		0: transport.RDMAPStreamCatastrophic, 1: transport.RDMAPStreamCatastrophic, 7: transport.RDMAPStreamCatastrophic,
		9: transport.DDPTooLong, 16: transport.DDPTooLong,
	} {
		c := converse(t, nil)
		mem := c.receive(64)
		segment := immediate(1, octets(n))
		c.wantRefused("it is refused", segment, blaming(code, segment))
		require.Empty(t, c.received)
		require.Equal(t, make([]byte, 64), mem, "nothing was placed")
	}
}

func TestEXT_4_13_ImmediateDataIsOneSegment(t *testing.T) {
	h := ddp.UntaggedHeader{RsvdULP: OpImmediate.control(), QN: QNSend, MSN: 1}
	c := converse(t, nil)
	c.receive(16)
	c.wantFault("a first segment of two", transport.RDMAPStreamCatastrophic, append(h.Append(nil), "12345678"...))
	h.Last, h.MO = true, 8
	c = converse(t, nil)
	c.receive(16)
	c.wantFault("a segment that is not the first", transport.DDPOffset, append(h.Append(nil), "12345678"...))
}

func TestEXT_18_ImmediateDataWithoutReceive(t *testing.T) {
	c := converse(t, nil)
	segment := immediate(1, "12345678")
	c.wantRefused("no receive is posted", segment, blaming(transport.DDPNoBuffer, segment))

	c = converse(t, nil)
	c.post(sendOf(1, ""), immediateOf(2, "x"))
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	c.sends("the peer has none either", terminateOf(blaming(transport.DDPNoBuffer, c.llp.sent[1])))
	c.s.End()
	c.wantDone("the source is told which one", "1 flushed", "2 no receive posted by the peer 1202")
	require.Len(t, c.terminated, 1)
}

func TestEXT_14_15_ImmediateDataKeepsItsPlaceAmongSends(t *testing.T) {
	c := converse(t, nil)
	for range 4 {
		c.receive(4)
	}
	c.sends("all kinds", immediate(1, "11111111"), untagged(OpSend, QNSend, 2, "2"), untagged(OpImmediateSolicited, QNSend, 3, "33333333"), untagged(OpSendSolicited, QNSend, 4, "4"))
	var ops []Opcode
	for _, m := range c.received {
		ops = append(ops, m.Opcode)
	}
	require.Equal(t, []Opcode{OpImmediate, OpSend, OpImmediateSolicited, OpSendSolicited}, ops)
}

func TestEXT_14_ImmediateDataOutOfOrder(t *testing.T) {
	const n = 40
	c := converse(t, func(cfg *Config) { cfg.Window = 5 })
	for range n {
		c.receive(4)
	}
	imm := func(i int) string { return strings.Repeat(string(rune('A'+i)), 8) }
	for base := 0; base < n; base += 5 {
		for _, i := range []int{1, 4, 2, 3, 0} { // five at a time, the first one last
			i += base
			segment := immediate(ddp.MSN(i+1), imm(i))
			if i%3 == 0 {
				segment = untagged(OpSend, QNSend, ddp.MSN(i+1), "s")
			}
			require.NoError(t, c.s.Segment(uint64(i), segment))
		}
	}
	require.Len(t, c.received, n)
	for i, m := range c.received {
		want := Received{Opcode: OpSend, Len: 1}
		if i%3 != 0 {
			want = Received{Opcode: OpImmediate}
			copy(want.Imm[:], imm(i))
		}
		require.Equal(t, want, m, "each message has its own octets, in the order sent")
	}
}

func TestEXT_19_ImmediateDataIsOrderedAsASend(t *testing.T) {
	c := converse(t, nil)
	c.post(readOf(1, target), immediateOf(2, "a"), immediateOf(3, "b").with(ReadFence), writeOf(4, target, "w"), immediateOf(5, "c").with(LocalFence))
	c.wantSegment("a Read", readRequestOf(1, ReadRequest{Src: target}))
	c.wantSegment("does not hold back Immediate Data", immediate(1, "a\x00\x00\x00\x00\x00\x00\x00"))
	c.wantIdle("unless there is a fence")
	require.Empty(t, c.done, "nothing completes before what was posted earlier")
	c.sends("the Read Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantSegment("the fence falls", immediate(2, "b\x00\x00\x00\x00\x00\x00\x00"))
	c.wantSegment("the Write", tagged(OpWrite, true, target, "w"))
	c.wantSegment("a Local Fence waits for all", immediate(3, "c\x00\x00\x00\x00\x00\x00\x00"))
	c.wantDone("all in order", "1 success", "2 success", "3 success", "4 success", "5 success")
}

func TestEXT_15_20_WriteWithImmediateIsOneRequest(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.SendDepth = 2 })
	c.llp.mulpdu, c.llp.capacity = 26, 1
	r := writeOf(1, target, "twelve octets, and 9")
	copy(r.Imm[:], "behind..")
	c.post(r.with(WithImmediate|Solicited), sendOf(2, ""))
	n, err := c.tryPost(sendOf(3, ""))
	require.ErrorIs(t, err, ErrQueueFull, "it takes one slot")
	require.Zero(t, n)

	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more)
	require.NoError(t, c.llp.Flush(true))
	c.s.Flushed()
	more, err = c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more)
	require.NoError(t, c.llp.Flush(true))
	c.s.Flushed()
	require.Empty(t, c.done, "the Write alone does not complete it")
	c.wantSegment("the Write, in two segments", tagged(OpWrite, false, target, "twelve octet"))
	require.Equal(t, tagged(OpWrite, true, RemoteAddr{target.STag, target.TO + 12}, "s, and 9"), c.llp.sent[0])
	require.Equal(t, untagged(OpImmediateSolicited, QNSend, 1, "behind.."), c.llp.sent[1], "right behind it the Immediate")
	require.Equal(t, untagged(OpSend, QNSend, 2, ""), c.llp.sent[2], "and only then what was posted next")
	c.wantDone("it makes one completion", "1 success", "2 success")
}

func TestEXT_20_NothingComesBetweenAWriteAndItsImmediate(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "answered")
	c.sends("the peer reads", readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0x1000}}))
	w := writeOf(1, target, "w")
	c.post(w.with(WithImmediate), sendOf(2, ""))
	require.NoError(t, c.flush())
	var ops []Opcode
	for _, g := range c.llp.sent {
		ops = append(ops, opcodeOf(g[1]))
	}
	require.Contains(t, [][]Opcode{
		{OpReadResponse, OpWrite, OpImmediate, OpSend}, {OpWrite, OpImmediate, OpReadResponse, OpSend}, {OpWrite, OpImmediate, OpSend, OpReadResponse},
	}, ops)
}

func TestEXT_18_66_WriteWithImmediateFails(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	require.Equal(t, 0, int(c.table.InvalidateSTag(alice, r.STag(), false)))
	q := Request{ID: 1, Kind: KindWrite, Spans: []stag.Span{span(r, 0, 8)}, Remote: target}
	c.post(q.with(WithImmediate), sendOf(2, ""))
	err := c.flush()
	require.Error(t, err)
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("instead of the messages, without headers", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("the source is told", "1 local protection error", "2 flushed")
}

func TestImmediateDataBelongsToAWrite(t *testing.T) {
	c := converse(t, nil)
	for _, r := range []Request{sendOf(1, ""), readOf(1, target), immediateOf(1, "")} {
		_, err := c.tryPost(r.with(WithImmediate))
		require.ErrorIs(t, err, ErrRequest)
	}
}

func TestTerminateNamesTheImmediateAfterAWrite(t *testing.T) {
	c := converse(t, nil)
	c.post(readOf(1, target), writeOf(2, target, "w").with(WithImmediate), sendOf(3, ""))
	require.NoError(t, c.flush())
	c.sends("the peer had no receive", terminateOf(blaming(transport.DDPNoBuffer, c.llp.sent[2])))
	c.s.End()
	c.wantDone("the request is known by its MSN", "1 flushed", "2 no receive posted by the peer 1202", "3 flushed")
}

// TestTerminateWhileAWriteWithImmediateIsBeingSent: the number of the Immediate Data, which the Terminate may name, is
// there from the beginning of the Write. The race detector looks on.
func TestTerminateWhileAWriteWithImmediateIsBeingSent(t *testing.T) {
	c := converse(t, nil)
	c.llp.mulpdu, c.llp.capacity = ddp.UntaggedLen+immediateLen, 1
	c.post(writeOf(1, target, octets(20)).with(WithImmediate))
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more, "one segment of the Write is in the batch, which is full")
	require.NoError(t, c.s.Flush(c.llp))

	c.llp.capacity = 0
	done := make(chan error, 1)
	appends := 0
	c.llp.before = func() {
		switch appends++; appends {
		case 1: // of the rest of the Write
			go func() {
				named := blaming(transport.DDPNoBuffer, immediate(1, "12345678"))
				done <- c.s.Segment(0, terminateOf(named))
			}()
		case 2:
			time.Sleep(10 * time.Millisecond) // in which the Terminate arrives
		}
	}
	_, err = c.s.Fill(c.llp)
	require.NoError(t, err)
	require.NoError(t, <-done)
	c.s.End()
	c.wantDone("the Terminate names it", "1 no receive posted by the peer 1202")
}

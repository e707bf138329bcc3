package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestRDMAP_98_StreamsAndDirectionsDoNotWaitForEachOther(t *testing.T) {
	c := converse(t, nil)
	c.receive(8)
	h := ddp.UntaggedHeader{RsvdULP: OpSend.control(), MSN: 1}
	c.sends("half a message of the peer", append(h.Append(nil), "half"...))
	c.post(sendOf(1, "ours"))
	c.wantSegment("holds back nothing of ours", untagged(OpSend, QNSend, 1, "ours"))

	other := converse(t, nil)
	other.wantFault("another stream may end", transport.RDMAPOpcode, tagged(OpSend, true, target, ""))
	h.MO, h.Last = 4, true
	c.sends("this one goes on", append(h.Append(nil), "half"...))
	c.wantReceived("as before", Received{Opcode: OpSend, Len: 8})
}

func TestRDMAP_99_PlacementMayComeInAnyOrder(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	r, mem := c.region(8, nil)
	at := RemoteAddr{r.STag(), 0x1000}
	require.NoError(t, c.take(1, tagged(OpWrite, true, at, "second")), "a Write that comes early is placed")
	require.Equal(t, "second", string(mem[:6]))
	require.NoError(t, c.take(0, tagged(OpWrite, true, at, "first")), "and so is one to the same octets")
	require.Contains(t, []string{"firstd", "second"}, string(mem[:6]), "which of them they hold is not told")
}

func TestRDMAP_106_CompletionsComeInPostOrder(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(8, nil)
	c.post(sendOf(1, ""), readOf(2, target, span(sink, 0, 8)), sendOf(3, ""), writeOf(4, target, ""), readOf(5, target))
	require.NoError(t, c.flush())
	c.wantDone("a Send that is out waits for the Read ahead of it", "1 success")
	c.sends("the Response", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, octets(8)))
	c.wantDone("which lets all that follows complete", "2 success", "3 success", "4 success")
	c.sends("and the second", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantDone("completes the last", "5 success")
	sq, _ := c.s.Unfinished()
	require.Zero(t, sq)
}

func TestRDMAP_101_ResponsesCompleteReadsInOrder(t *testing.T) {
	for _, window := range []int{0, 8} {
		c := converse(t, func(cfg *Config) { cfg.Window = window })
		sink, mem := c.region(16, nil)
		c.post(readOf(1, target, span(sink, 0, 8)), readOf(2, target, span(sink, 8, 8)))
		require.NoError(t, c.flush())
		first := tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "first...")
		second := tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1008}, "second..")
		if window == 0 {
			c.wantFault("the second cannot overtake the first", transport.DDPBounds, second)
			continue
		}
		require.NoError(t, c.take(1, second), "where order is not kept the second may be placed first")
		require.Equal(t, "second..", string(mem[8:]))
		require.Empty(t, c.done, "but completes nothing")
		require.NoError(t, c.take(0, first))
		c.wantDone("before the first has come", "1 success", "2 success")
		require.Equal(t, "first...second..", string(mem))
	}

	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	require.NoError(t, c.take(1, tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1004}, "last")))
	require.NoError(t, c.flush())
	require.Empty(t, c.done, "the last segment of a Response is placed, but the message is not delivered")
	require.NoError(t, c.take(0, tagged(OpReadResponse, false, RemoteAddr{sink.STag(), 0x1000}, "1st ")))
	c.wantDone("until the first has come", "1 success")
}

func TestRDMAP_40_ResponsesOutOfOrderMustMatchToo(t *testing.T) {
	at := func(c *conversation) (RemoteAddr, func(off uint64, last bool, payload string) []byte) {
		sink, _ := c.region(16, nil)
		c.post(readOf(1, target, span(sink, 0, 8)))
		require.NoError(c, c.flush())
		a := RemoteAddr{sink.STag(), 0x1000}
		return a, func(off uint64, last bool, payload string) []byte {
			return tagged(OpReadResponse, last, RemoteAddr{a.STag, a.TO + off}, payload)
		}
	}
	start := func() (*conversation, func(uint64, bool, string) []byte) {
		c := converse(t, func(cfg *Config) { cfg.Window = 8 })
		_, segment := at(c)
		return c, segment
	}
	c, segment := start()
	c.wantFault("outside the sink", transport.DDPBounds, segment(8, true, "x"))
	c, segment = start()
	c.wantFault("the last one ends early", transport.DDPBounds, segment(0, true, "1234567"))
	c, segment = start()
	c.wantFault("the first half is left out", transport.DDPBounds, segment(4, true, "5678"))
	c, segment = start()
	c.sends("in pieces", segment(0, false, "1234"), segment(4, false, "5678"), segment(8, true, ""))
	c, segment = start()
	require.NoError(t, c.take(1, segment(4, true, "5678")))
	require.NoError(t, c.take(0, segment(0, false, "1234")))
	c.wantDone("in pieces that overtake each other", "1 success")
	c.seq = 2
	c.wantFault("nothing is outstanding any more", transport.RDMAPOpcode, segment(0, false, "1234"))
}

// TestRDMAP_40_ResponseThatMatchesNoReadFailsTheOldestOne, over a layer that reorders too, and never an operation that is no Read.
func TestRDMAP_40_ResponseThatMatchesNoReadFailsTheOldestOne(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	sink, _ := c.region(16, nil)
	c.post(readOf(1, target, span(sink, 0, 8)), readOf(2, target, span(sink, 8, 8)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	segment := tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, octets(9))
	c.wantRefused("an octet more", segment, blaming(transport.DDPBounds, segment))
	c.s.End()
	c.wantDone("the Read tells that the response is bad", "1 bad response 1101", "2 flushed")

	c = converse(t, func(cfg *Config) { cfg.Window = 8 })
	c.post(atomicOf(1, add(target, 1)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	segment = tagged(OpReadResponse, true, RemoteAddr{0x700, 0x1000}, octets(8))
	c.wantRefused("a response to nothing", segment, blaming(transport.DDPBounds, segment))
	c.s.End()
	c.wantDone("the atomic operation is not to blame", "1 flushed")
}

// TestRDMAP_78_NothingIsDeliveredBehindATerminate: what came before its turn, and belongs after the Terminate, is dropped.
func TestRDMAP_78_NothingIsDeliveredBehindATerminate(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	c.receive(8)
	c.receive(8)
	require.NoError(t, c.take(3, untagged(OpSend, QNSend, 3, "third"))) // no receive is there for it
	require.NoError(t, c.take(2, untagged(OpSend, QNSend, 2, "second")))
	require.NoError(t, c.take(1, terminateOf(bare(0))))
	require.NoError(t, c.take(0, untagged(OpSend, QNSend, 1, "first")))
	require.Len(t, c.received, 1, "what was sent before the Terminate")
	require.Len(t, c.terminated, 1)
	require.NoError(t, c.take(4, untagged(OpSend, QNSend, 4, "")))
	require.Len(t, c.received, 1)
}

// TestRDMAP_40_41_OctetsThatComeTwiceDoNotMakeUpForOthers: a peer over a layer that reorders
// sends as many octets as were asked for, and not those.
func TestRDMAP_40_41_OctetsThatComeTwiceDoNotMakeUpForOthers(t *testing.T) {
	type piece struct {
		seq     uint64
		off     uint64
		last    bool
		payload string
	}
	for what, pieces := range map[string][]piece{
		"one half twice":                     {{0, 4, false, "5678"}, {1, 4, true, "5678"}},
		"one half twice, the last one first": {{1, 4, true, "5678"}, {0, 4, false, "5678"}},
		"parts that overlap":                 {{0, 0, false, "1234"}, {1, 3, false, "456"}, {2, 7, true, "8"}},
		"an octet left out, others twice":    {{0, 0, false, "123"}, {1, 4, false, "567"}, {2, 6, true, "78"}},
		"octets of the second Read":          {{1, 4, true, "5678"}, {0, 8, false, "abcd"}},
		"the second Read first":              {{0, 8, true, "abcdefgh"}},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, func(cfg *Config) { cfg.Window = 8 })
			sink, _ := c.region(16, nil)
			c.post(readOf(1, target, span(sink, 0, 8)), readOf(2, target, span(sink, 8, 8)))
			require.NoError(t, c.flush())
			var err error
			for _, p := range pieces {
				if err != nil {
					break
				}
				err = c.take(p.seq, tagged(OpReadResponse, p.last, RemoteAddr{sink.STag(), 0x1000 + p.off}, p.payload))
			}
			require.Equal(t, transport.DDPBounds, asFault(0, err).Code, "the response is not what was asked for: %v", err)
			require.True(t, c.s.Terminate(err))
			c.s.End()
			require.Equal(t, []string{"1 bad response 1101", "2 flushed"}, c.done, "neither Read is complete")
		})
	}
}

func TestRDMAP_109_SendIsDeliveredBeforeEarlierReadsAreAnswered(t *testing.T) {
	c := converse(t, nil)
	c.receive(8)
	c.sends("a Read Request, then a Send", readRequestOf(1, ReadRequest{Sink: target}), untagged(OpSend, QNSend, 1, "x"))
	c.wantReceived("the Send does not wait", Received{Opcode: OpSend, Len: 1})
	c.wantSegment("for the Response", tagged(OpReadResponse, true, target, ""))
}

// TestEXT_22_MessagesArePublishedBeforeARequest: the response to it tells the peer that they are complete.
func TestEXT_22_MessagesArePublishedBeforeARequest(t *testing.T) {
	var c *conversation
	var calls []int // how many messages there were
	c = converse(t, func(cfg *Config) {
		cfg.Publish = func() {
			_, irq := c.s.Unfinished()
			require.Zero(t, irq, "nothing can be answered yet")
			calls = append(calls, len(c.received))
		}
	})
	r, _ := c.region(8, nil)
	for range 4 {
		c.buffers = append(c.buffers, []stag.Span{span(r, 0, 8)})
	}
	c.sends("a Read Request behind nothing", readRequestOf(1, ReadRequest{Sink: target}))
	c.wantSegment("is answered", tagged(OpReadResponse, true, target, ""))
	c.sends("a Send, Immediate Data and two Read Requests", untagged(OpSend, QNSend, 1, "x"), immediate(2, "12345678"), readRequestOf(2, ReadRequest{Sink: target}))
	c.wantSegment("an answer", tagged(OpReadResponse, true, target, ""))
	c.sends("the second", readRequestOf(3, ReadRequest{Sink: target}))
	c.wantSegment("an answer", tagged(OpReadResponse, true, target, ""))
	require.NoError(t, c.s.Segments(c.seq, &arrivals{untagged(OpSend, QNSend, 3, "y"), untagged(OpSend, QNSend, 4, "z"), readRequestOf(4, ReadRequest{Sink: target})}))
	require.Equal(t, []int{2, 4}, calls, "once for the messages before a request")
	require.Equal(t, []int{2}, c.runs, "whether they come together or not")
}

func TestRDMAP_100_VERBS_69_SendShowsEarlierWrites(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	r, mem := c.region(8, nil)
	c.receive(8)
	require.NoError(t, c.take(1, untagged(OpSend, QNSend, 1, "x")))
	require.Empty(t, c.received, "a Send that comes before a Write that was sent earlier is not delivered")
	require.NoError(t, c.take(0, tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, "data")))
	c.wantReceived("until the Write is placed", Received{Opcode: OpSend, Len: 1})
	require.Equal(t, "data", string(mem[:4]))
}

func TestRDMAP_103_FenceKeepsResponsesFromLaterWrites(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)), writeOf(2, target, "new data").with(ReadFence))
	c.wantSegment("a Read", readRequestOf(1, ReadRequest{Sink: RemoteAddr{sink.STag(), 0x1000}, Size: 8, Src: target}))
	c.wantIdle("a Write that is fenced waits for its Response")
	c.sends("the Response", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, octets(8)))
	c.wantSegment("then it goes", tagged(OpWrite, true, target, "new data"))
}

// draft-hilland-rddp-verbs section 8.2.2: fences.

func TestVERBS_64_66_ReadFence(t *testing.T) {
	c := converse(t, nil)
	c.post(readOf(1, target), sendOf(2, "free"), sendOf(3, "fenced").with(ReadFence), sendOf(4, "behind"))
	c.wantSegment("the Read", readRequestOf(1, ReadRequest{Src: target}))
	c.wantSegment("what has no fence overtakes its Response", untagged(OpSend, QNSend, 1, "free"))
	c.wantIdle("a fenced Send waits for it, and all behind with it")
	require.False(t, c.s.Pending())
	c.sends("the Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	require.True(t, c.s.Pending(), "frees it")
	c.wantSegment("it goes", untagged(OpSend, QNSend, 2, "fenced"))
	c.wantSegment("and what was behind", untagged(OpSend, QNSend, 3, "behind"))
	c.wantDone("all complete", "1 success", "2 success", "3 success", "4 success")
}

func TestVERBS_65_LocalFence(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	c.post(sendOf(1, "x"), Request{ID: 2, Kind: KindInvalidate, Flags: LocalFence, Invalidate: r.STag()})
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.False(t, more)
	require.True(t, r.Valid(), "the fenced request waits for the Send to complete")
	require.False(t, c.s.Pending())
	c.s.Flushed()
	require.True(t, c.s.Pending())
	require.NoError(t, c.flush())
	require.False(t, r.Valid())
	c.wantDone("then it is done", "1 success", "2 success")

	c.post(readOf(3, target), sendOf(4, "y").with(LocalFence))
	c.llp.sent = nil
	c.wantSegment("a Read", readRequestOf(1, ReadRequest{Src: target}))
	c.wantIdle("holds it back too")
	c.sends("until it completes", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantSegment("then it goes", untagged(OpSend, QNSend, 2, "y"))
}

func TestVERBS_15_InvalidateDoesNotWaitForEarlierRequests(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	c.post(readOf(1, target), Request{ID: 2, Kind: KindInvalidate, Invalidate: r.STag()}, sendOf(3, "revoked"))
	c.wantSegment("the Read", readRequestOf(1, ReadRequest{Src: target}))
	c.wantSegment("the Send that tells of it", untagged(OpSend, QNSend, 1, "revoked"))
	require.False(t, r.Valid(), "comes when the STag is dead")
	require.Empty(t, c.done, "though all of them complete in order")
}

// A message of one side is never cut by one of the other, and neither side can keep
// the other from sending.
func TestRequestsAndResponsesTakeTurns(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.SendDepth = 1024; cfg.IRD = 64 })
	c.llp.mulpdu = 16 << 10
	c.llp.capacity = 4
	r, _ := c.region(256<<10, nil)
	for i := range 64 {
		c.sends("a flood of Reads", readRequestOf(ddp.MSN(i+1), ReadRequest{Sink: target, Size: 128 << 10, Src: RemoteAddr{r.STag(), 0x1000}}))
	}
	for i := range uint64(1024) {
		c.post(Request{ID: i, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(r, 0, 16<<10)}})
	}
	require.NoError(t, c.flush())
	var octets [2]int
	open := Opcode(0xff)
	for i, g := range c.llp.sent {
		op := opcodeOf(g[1])
		if open != 0xff {
			require.Equal(t, open, op, "segment %d is in the middle of a message", i)
		}
		open = op
		if h, _ := ddp.ParseTagged(g); h.Last {
			open = 0xff
		}
		octets[op/OpReadResponse] += len(g)
		if octets[1] < 8<<20 && octets[0] < 8<<20 {
			require.InDelta(t, octets[0], octets[1], 160<<10, "segment %d: each has had its share of the octets", i)
		}
	}
	require.Len(t, c.done, 1024, "all of it was sent")
}

package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

var target = RemoteAddr{STag: 0x11223344, TO: 0x1000}

// oneOfEach is a stream that has one message of every kind to send, in the order of
// their opcodes except the Terminate.
func oneOfEach(t *testing.T) *conversation {
	c := converse(t, nil)
	source, _ := c.region(8, nil)
	c.sends("a Read Request is accepted", readRequestOf(1, ReadRequest{
		Sink: target, Size: 8, Src: RemoteAddr{source.STag(), 0x1000},
	}))
	c.post(
		writeOf(1, target, "\x00\x01\x02\x03\x04\x05\x06\x07"),
		readOf(2, target, span(source, 0, 8)),
		sendOf(3, "hello"),
		Request{ID: 4, Kind: KindSend, Flags: Invalidating, Invalidate: 0xdeadbe01},
		sendOf(5, "").with(Solicited),
		Request{ID: 6, Kind: KindSend, Flags: Solicited | Invalidating, Invalidate: 0xdeadbe01},
	)
	require.NoError(t, c.flush())
	require.True(t, c.s.Terminate(&transport.Fault{Code: transport.MPACRC}))
	require.NoError(t, c.flush())
	return c
}

func TestRDMAP_1_2_3_4_ControlOctet(t *testing.T) {
	c := oneOfEach(t)
	var first [][2]byte
	for _, g := range c.llp.sent {
		first = append(first, [2]byte(g))
	}
	require.Equal(t, [][2]byte{
		{0xc1, 0x42}, // Read Response: nothing was ahead, so the peer's turn is first
		{0xc1, 0x40}, // Write
		{0x41, 0x41}, // Read Request
		{0x41, 0x43}, // Send
		{0x41, 0x44}, // Send with Invalidate
		{0x41, 0x45}, // Send with Solicited Event
		{0x41, 0x46}, // Send with both
		{0x41, 0x47}, // Terminate
	}, first, "each message is one DDP message; RV is 01, Rsv is 00, then the opcode")
}

// A message of several segments is one DDP message: one MSN, L in its last segment only,
// also where a batch ends within it.
func TestRDMAP_1_MessageIsOneDDPMessage(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		c := converse(t, nil)
		c.llp.capacity = capacity
		source, _ := c.region(3000, nil)
		all := []stag.Span{span(source, 0, 3000)}
		c.post(
			Request{ID: 1, Kind: KindWrite, Remote: target, Spans: all},
			Request{ID: 2, Kind: KindSend, Flags: Solicited, Spans: all},
			Request{ID: 3, Kind: KindSend, Spans: all})
		require.NoError(t, c.flush())
		c.sends("a Read Request", readRequestOf(1, ReadRequest{Sink: target, Size: 3000, Src: RemoteAddr{source.STag(), 0x1000}}))
		require.NoError(t, c.flush())
		type segment struct {
			op   Opcode
			msn  ddp.MSN
			at   uint64
			last bool
		}
		var got []segment
		for _, g := range c.llp.sent {
			if ddp.IsTagged(g) {
				h, err := ddp.ParseTagged(g)
				require.NoError(t, err)
				got = append(got, segment{opcodeOf(h.RsvdULP), 0, h.TO - target.TO, h.Last})
				continue
			}
			h, err := ddp.ParseUntagged(g)
			require.NoError(t, err)
			got = append(got, segment{opcodeOf(h.RsvdULP), h.MSN, uint64(h.MO), h.Last})
		}
		require.Equal(t, []segment{
			{OpWrite, 0, 0, false},
			{OpWrite, 0, 1486, false},
			{OpWrite, 0, 2972, true},
			{OpSendSolicited, 1, 0, false},
			{OpSendSolicited, 1, 1482, false},
			{OpSendSolicited, 1, 2964, true},
			{OpSend, 2, 0, false},
			{OpSend, 2, 1482, false},
			{OpSend, 2, 2964, true},
			{OpReadResponse, 0, 0, false},
			{OpReadResponse, 0, 1486, false},
			{OpReadResponse, 0, 2972, true},
		}, got)
	}
}

func TestRDMAP_6_7_REG_7_ModelAndQueueOfEachMessage(t *testing.T) {
	queues := map[byte]ddp.QN{1: 1, 3: 0, 4: 0, 5: 0, 6: 0, 7: 2}
	seen := make(map[byte]bool)
	for _, g := range oneOfEach(t).llp.sent {
		op := g[1] & 0x0f
		seen[op] = true
		want, untagged := queues[op]
		require.Equal(t, !untagged, ddp.IsTagged(g), "T of opcode %d", op)
		if untagged {
			h, err := ddp.ParseUntagged(g)
			require.NoError(t, err)
			require.Equal(t, want, h.QN, "QN of opcode %d", op)
		}
	}
	require.Len(t, seen, 8, "one of each, 0 to 7")
	for op, want := range map[Opcode]byte{
		OpWrite: 0, OpReadRequest: 1, OpReadResponse: 2, OpSend: 3, OpSendInvalidate: 4, OpSendSolicited: 5,
		OpSendSolicitedInvalidate: 6, OpTerminate: 7, OpImmediate: 8, OpImmediateSolicited: 9, OpAtomicRequest: 10, OpAtomicResponse: 11,
	} {
		require.EqualValues(t, want, op, "%v", op)
	}
}

func TestRDMAP_6_7_WrongModelOrQueueIsRefused(t *testing.T) {
	empty := string(ReadRequest{}.Append(nil))
	for what, segment := range map[string][]byte{
		"Send, tagged":                 tagged(OpSend, true, target, ""),
		"Read Request, tagged":         tagged(OpReadRequest, true, target, empty),
		"Write, untagged":              untagged(OpWrite, QNSend, 1, ""),
		"Read Response, untagged":      untagged(OpReadResponse, QNSend, 1, ""),
		"Send on QN 1":                 untagged(OpSend, QNRequest, 1, ""),
		"Send with Invalidate on QN 2": untagged(OpSendInvalidate, QNTerminate, 1, ""),
		"Read Request on QN 0":         untagged(OpReadRequest, QNSend, 1, empty),
		"Immediate Data, tagged":       tagged(OpImmediate, true, target, octets(8)),
		"Immediate Data on QN 1":       untagged(OpImmediateSolicited, QNRequest, 1, octets(8)),
		"Atomic Request, tagged":       tagged(OpAtomicRequest, true, target, octets(52)),
		"Atomic Request on QN 0":       untagged(OpAtomicRequest, QNSend, 1, octets(52)),
		"Atomic Response on QN 1":      untagged(OpAtomicResponse, QNRequest, 1, octets(12)),
		"Send on QN 3":                 untagged(OpSend, QNResponse, 1, octets(12)),
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			mem := c.receive(64)
			c.wantRefused("it is unexpected", segment, blaming(transport.RDMAPOpcode, segment))
			require.Equal(t, make([]byte, 64), mem, "nothing was placed")
		})
	}
	c := converse(t, func(cfg *Config) { cfg.ORD = 0 })
	c.wantFault("QN 3 does not exist where nothing is asked for", transport.DDPQueue, untagged(0xb, QNResponse, 1, octets(12)))
}

func TestRDMAP_5_ReservedBitsAreIgnored(t *testing.T) {
	c := converse(t, nil)
	mem := c.receive(8)
	c.sends("a Send with Rsv=11 is taken", patch(untagged(OpSend, QNSend, 1, "hello"), 1, 0x73))
	require.Equal(t, "hello", string(mem[:5]))
	c.wantReceived("it is delivered as a Send", Received{Opcode: OpSend, Len: 5})
}

func TestRDMAP_8_10_52_InvalidateSTagField(t *testing.T) {
	c := oneOfEach(t)
	for _, g := range c.llp.sent {
		if ddp.IsTagged(g) {
			continue
		}
		h, err := ddp.ParseUntagged(g)
		require.NoError(t, err)
		want := uint32(0)
		if opcodeOf(g[1]).Invalidates() {
			want = 0xdeadbe01
		}
		require.Equal(t, want, h.RsvdULPWord, "octets 2 to 5 of %v", opcodeOf(g[1]))
	}
}

func TestRDMAP_10_InvalidateSTagIsInEverySegment(t *testing.T) {
	c := converse(t, nil)
	source, mem := c.region(4000, nil)
	copy(mem, octets(4000))
	c.post(Request{ID: 1, Kind: KindSend, Flags: Invalidating, Invalidate: 0xdeadbe01, Spans: []stag.Span{span(source, 0, 4000)}})
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 3)
	for i, g := range c.llp.sent {
		require.Equal(t, []byte{0x44, 0xde, 0xad, 0xbe, 0x01}, g[1:6], "segment %d", i)
	}
}

func TestRDMAP_9_InvalidateSTagIsIgnoredElsewhere(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	for i, op := range []Opcode{OpSend, OpSendSolicited} {
		c.receive(8)
		c.sends("a plain Send is taken", invalidating(op, ddp.MSN(i+1), r.STag(), "x"))
		require.True(t, r.Valid(), "a plain Send invalidates nothing")
		c.wantReceived("it reports no STag", Received{Opcode: op, Len: 1, Solicited: op == OpSendSolicited})
	}
	g := readRequestOf(1, ReadRequest{})
	copy(g[2:], []byte{byte(r.STag() >> 24), byte(r.STag() >> 16), byte(r.STag() >> 8), byte(r.STag())})
	c.sends("a Read Request is taken", g)
	g = terminateOf(bare(transport.MPACRC))
	copy(g[2:], []byte{byte(r.STag() >> 24), byte(r.STag() >> 16), byte(r.STag() >> 8), byte(r.STag())})
	c.sends("a Terminate is taken", g)
	require.True(t, r.Valid(), "neither invalidates anything")
}

func TestRDMAP_11_57_MessageIsReportedWithItsLength(t *testing.T) {
	c := converse(t, nil)
	c.receive(4000)
	h := ddp.UntaggedHeader{RsvdULP: 0x45, MSN: 1}
	c.sends("the first segment is taken", append(h.Append(nil), octets(1482)...))
	require.Empty(t, c.received, "half a message is not delivered")
	h.Last, h.MO = true, 1482
	c.sends("the last segment is taken", append(h.Append(nil), octets(566)...))
	c.wantReceived("what RsvdULP says and the length are reported", Received{Opcode: OpSendSolicited, Len: 2048, Solicited: true})
}

func TestRDMAP_12_PayloadFollowsTheDDPHeader(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, "hello"), writeOf(2, target, "\x00\x01\x02\x03\x04\x05\x06\x07"))
	c.wantSegment("a Send has no RDMAP header (V7)", unhex("4143 00000000 00000000 00000001 00000000 | 68656c6c6f"))
	c.wantSegment("nor has a Write (V8)", unhex("c140 11223344 0000000000001000 | 0001020304050607"))

	c = converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "answered")
	for i := range 4 {
		send := Request{ID: uint64(i), Kind: KindSend, Spans: []stag.Span{span(r, 0, 2), span(r, 2, 1)}}
		c.post(send.with([]Flags{0, Solicited, Invalidating, Solicited | Invalidating}[i]))
	}
	for i, op := range []Opcode{OpSend, OpSendSolicited, OpSendInvalidate, OpSendSolicitedInvalidate} {
		c.wantSegment("nor has any kind of Send", untagged(op, QNSend, ddp.MSN(i+1), "ans"))
	}
	for i, n := range []uint32{8, 8, 0} {
		c.sends("a Read Request", readRequestOf(ddp.MSN(i+1), ReadRequest{Sink: target, Size: n, Src: RemoteAddr{r.STag(), 0x1000}}))
		c.wantSegment("nor has a Read Response", tagged(OpReadResponse, true, target, "answered"[:n]))
	}
	got := c.receive(8)
	c.sends("what comes has none either",
		untagged(OpSend, QNSend, 1, "received"), tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, "writ"))
	require.Equal(t, "received", string(got))
	require.Equal(t, "writered", string(mem))
	c.post(readOf(9, target, span(r, 4, 4)))
	require.NoError(t, c.flush())
	c.sends("nor a Response", tagged(OpReadResponse, true, RemoteAddr{r.STag(), 0x1004}, "read"))
	require.Equal(t, "writread", string(mem))
}

func TestRDMAP_13_ControlMessagesCarryNoPayload(t *testing.T) {
	for what, segment := range map[string][]byte{
		"Read Request": untagged(OpReadRequest, QNRequest, 1, octets(29)),
		"Terminate":    untagged(OpTerminate, QNTerminate, 1, octets(53)),
	} {
		c := converse(t, nil)
		c.wantFault(what+" with an octet more is too long", transport.DDPTooLong, segment)
	}
	for _, g := range oneOfEach(t).llp.sent {
		if n, control := map[Opcode]int{OpReadRequest: 46, OpTerminate: 22}[opcodeOf(g[1])]; control {
			require.Len(t, g, n, "%v ends with its header", opcodeOf(g[1]))
		}
	}
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	c.post(readOf(1, target, span(r, 0, 8)), readOf(2, target, span(r, 0, 8)).with(ReadFence))
	require.NoError(t, c.flush())
	c.sends("a Response", tagged(OpReadResponse, true, RemoteAddr{r.STag(), 0x1000}, octets(8)))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 2)
	for _, g := range c.llp.sent {
		require.Len(t, g, 46, "a Read Request has no octet of its sink")
	}
	c.llp.sent = nil
	require.True(t, c.s.Terminate(c.fault("a Write to nowhere", transport.DDPInvalidSTag, tagged(OpWrite, true, target, octets(100)))))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 1)
	require.Len(t, c.llp.sent[0], ddp.UntaggedLen+4+2+ddp.TaggedLen, "a Terminate has no octet of the payload that it is about")
}

func TestRDMAP_14_MSNStartsAtOneForEachQueue(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, ""), readOf(2, target), sendOf(3, ""), readOf(4, target))
	var got [][2]uint32
	require.NoError(t, c.flush())
	for _, g := range c.llp.sent {
		h, err := ddp.ParseUntagged(g)
		require.NoError(t, err)
		got = append(got, [2]uint32{uint32(h.QN), uint32(h.MSN)})
	}
	require.Equal(t, [][2]uint32{{0, 1}, {1, 1}, {0, 2}, {1, 2}}, got, "QN and MSN")

	c.receive(0)
	c.sends("the peer's numbers are its own", untagged(OpSend, QNSend, 1, ""), readRequestOf(1, ReadRequest{}))
	c.receive(0)
	c.wantFault("and start at 1", transport.DDPMSNRange, untagged(OpSend, QNSend, 1, ""))
}

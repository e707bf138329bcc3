package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestRDMAP_114_115_130_OutboundReadsStayBelowTheORD(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.ORD = 2 })
	c.post(readOf(1, target), readOf(2, target), readOf(3, target), sendOf(4, "behind"))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 2, "the third Read waits, and all after it")
	require.Equal(t, 2, c.s.Outstanding())
	require.False(t, c.s.Pending())
	c.llp.sent = nil
	c.sends("a Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	require.True(t, c.s.Pending())
	c.wantSegment("frees a slot", readRequestOf(3, ReadRequest{Src: target}))
	c.wantSegment("and the queue", untagged(OpSend, QNSend, 1, "behind"))
	require.Equal(t, 2, c.s.Outstanding())
}

func TestRDMAP_114_VERBS_67_ReadWithoutORD(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.ORD = 0 })
	c.post(readOf(1, target), sendOf(2, ""))
	err := c.flush()
	require.Error(t, err)
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("ends the stream", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("the Read tells", "1 local operation error", "2 flushed")
}

func TestRDMAP_37_113_116_132_InboundReadsStayWithinTheIRD(t *testing.T) {
	for _, window := range []int{0, 8} {
		c := converse(t, func(cfg *Config) { cfg.IRD, cfg.Window = 2, window })
		request := func(msn ddp.MSN) []byte { return readRequestOf(msn, ReadRequest{Sink: target}) }
		c.sends("as many as the IRD", request(1), request(2))
		c.wantSegment("are answered", tagged(OpReadResponse, true, target, ""))
		c.wantSegment("are answered", tagged(OpReadResponse, true, target, ""))
		c.sends("then there is room again, for this stream has its own buffers", request(3), request(4))
		_, irq := c.s.Unfinished()
		require.Equal(t, 2, irq)
		segment := request(5)
		c.wantRefused("one more ends the stream", segment, blaming(transport.DDPMSNRange, segment))
	}
}

// What one stream's peer takes of QN 1 is not missing in another stream, not even of the
// same PD.
func TestRDMAP_132_StreamsHaveBuffersOfTheirOwn(t *testing.T) {
	greedy := converse(t, func(cfg *Config) { cfg.IRD = 64 })
	for msn := range ddp.MSN(64) {
		greedy.sends("one peer takes all that its stream has", readRequestOf(msn+1, ReadRequest{Sink: target}))
	}
	for _, scope := range []stag.Scope{bob, carol} {
		modest := converse(t, func(cfg *Config) { cfg.Table, cfg.Scope, cfg.IRD = greedy.table, scope, 2 })
		modest.sends("another has its own", readRequestOf(1, ReadRequest{Sink: target}), readRequestOf(2, ReadRequest{Sink: target}))
		modest.wantFault("and no more", transport.DDPMSNRange, readRequestOf(3, ReadRequest{Sink: target}))
	}
	greedy.wantFault("nor has the first", transport.DDPMSNRange, readRequestOf(65, ReadRequest{Sink: target}))
	require.NoError(t, greedy.flush())
	require.Len(t, greedy.llp.sent, 64, "its requests are as they were")
}

// A buffer of QN 1 is free as soon as its response is in the batch.
func TestRDMAP_116_NextRequestMayFollowTheResponse(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.IRD = 1 })
	for i := range 100 {
		c.sends("a request", readRequestOf(ddp.MSN(i+1), ReadRequest{Sink: target}))
		_, err := c.s.Fill(c.llp)
		require.NoError(t, err)
	}
	require.Len(t, c.llp.sent, 100)
}

func TestRDMAP_112_RTRGoesAheadOfEverything(t *testing.T) {
	for m, want := range map[transport.RTR]string{
		transport.RTRSend:  "4143 00000000 00000000 00000001 00000000",
		transport.RTRWrite: "c140 00000000 0000000000000000",
		transport.RTRRead: `4141 00000000 00000001 00000001 00000000
			00000000 0000000000000000 00000000 00000000 0000000000000000`,
	} {
		c := converse(t, func(cfg *Config) { cfg.RTR, cfg.ORD, cfg.SendDepth = m, 1, 2 })
		require.True(t, c.s.Pending())
		c.post(sendOf(1, ""), writeOf(2, target, ""))
		_, err := c.tryPost(sendOf(3, ""))
		require.ErrorIs(t, err, ErrQueueFull, "it takes none of the poster's room")
		c.wantSegment("the RTR is first", unhex(want))
		require.NoError(t, c.flush())
		if m == transport.RTRRead {
			require.Equal(t, 1, c.s.Outstanding(), "a Read takes a slot of the ORD")
			require.Empty(t, c.done)
			c.sends("until it is answered", tagged(OpReadResponse, true, RemoteAddr{}, ""))
		}
		require.Zero(t, c.s.Outstanding())
		c.wantDone("it makes no completion", "1 success", "2 success")
	}
	c := converse(t, func(cfg *Config) { cfg.RTR = transport.RTRWrite })
	require.True(t, c.s.Terminate(&transport.Fault{Code: transport.MPANoRTR}))
	c.wantTerminate("a Terminate takes its place", bare(transport.MPANoRTR))
	c.s.End()
	require.Empty(t, c.done, "also at the end it makes no completion")

	for _, m := range []transport.RTR{transport.RTRSend, transport.RTRWrite} {
		c = converse(t, func(cfg *Config) { cfg.RTR = m })
		require.NoError(t, c.flush())
		c.post(sendOf(1, ""))
		require.NoError(t, c.flush())
		c.wantDone("a request that takes its place after it makes one", "1 success")
	}
}

// The responder does not wait for the RTR, as with EarlyResponderSend.
func TestMPA2_7_NoResponseGoesAheadOfTheRTR(t *testing.T) {
	for m, want := range map[transport.RTR]Opcode{transport.RTRSend: OpSend, transport.RTRWrite: OpWrite, transport.RTRRead: OpReadRequest} {
		for _, size := range []uint32{0, 8} {
			for _, requests := range []int{1, 3} {
				c := converse(t, func(cfg *Config) { cfg.RTR = m })
				r, _ := c.region(8, nil)
				for i := range requests {
					c.sends("a Read", readRequestOf(ddp.MSN(i+1), ReadRequest{Sink: target, Size: size, Src: RemoteAddr{r.STag(), 0x1000}}))
				}
				require.NoError(t, c.flush())
				require.Len(t, c.llp.sent, 1+requests, "the RTR and the responses")
				require.Equal(t, want, opcodeOf(c.llp.sent[0][1]), "the RTR is first of %d", 1+requests)
			}
		}
	}
}

func TestRDMAP_1_112_OnlyRDMAMessagesAreTaken(t *testing.T) {
	c := converse(t, nil)
	c.wantFault("what is no segment ends the stream", transport.DDPLocalCatastrophic, []byte("GET / HTTP/1.1")[:3])
}

// RFC 5040 section 7.2.

func TestRDMAP_87_REG_8_9_UnknownOpcode(t *testing.T) {
	for op := OpAtomicResponse + 1; op < numOpcodes; op++ {
		for _, segment := range [][]byte{
			untagged(op, QNSend, 1, "12345678"), untagged(op, QNRequest, 1, ""), untagged(op, QNTerminate, 1, ""), tagged(op, true, target, ""),
		} {
			c := converse(t, nil)
			c.receive(8)
			c.wantRefused("it is unexpected", segment, blaming(transport.RDMAPOpcode, segment))
			require.Empty(t, c.received)
		}
	}
}

func TestRDMAP_3_88_AnotherVersion(t *testing.T) {
	for _, version := range []byte{0x00, 0x80, 0xc0} {
		for _, segment := range [][]byte{
			untagged(OpSend, QNSend, 1, "x"), readRequestOf(1, ReadRequest{}), tagged(OpWrite, true, target, "x"), tagged(OpReadResponse, true, target, ""),
		} {
			segment = patch(segment, 1, segment[1]&0x3f|version)
			c := converse(t, nil)
			c.receive(8)
			c.wantRefused("it is refused, with the DDP header and no RDMA header", segment, blaming(transport.RDMAPVersion, segment))
			require.Empty(t, c.received)
		}
	}
}

// RFC 5040 section 8.1.1: what the table of STags promises holds for every message
// that names one.

func TestRDMAP_120_121_STagsOfOthersAreUseless(t *testing.T) {
	for _, scope := range []stag.Scope{bob, carol} {
		for what, attack := range map[string]func(*conversation, RemoteAddr) error{
			"Write": func(c *conversation, a RemoteAddr) error { return c.send(tagged(OpWrite, true, a, "x")) },
			"Read Request": func(c *conversation, a RemoteAddr) error {
				return c.send(readRequestOf(1, ReadRequest{Sink: target, Size: 1, Src: a}))
			},
			"Read Response": func(c *conversation, a RemoteAddr) error {
				sink, _ := c.region(8, nil)
				c.post(readOf(1, target, span(sink, 0, 1)))
				require.NoError(c, c.flush())
				return c.send(tagged(OpReadResponse, true, a, "x"))
			},
			"Send with Invalidate": func(c *conversation, a RemoteAddr) error {
				c.receive(8)
				return c.send(invalidating(OpSendInvalidate, 1, a.STag, ""))
			},
		} {
			c := converse(t, nil)
			r, mem := c.region(8, func(o *stag.Options) { o.Scope = scope })
			require.Error(t, attack(c, RemoteAddr{r.STag(), 0x1000}), what)
			require.True(t, r.Valid(), what)
			require.Equal(t, make([]byte, 8), mem, what)
		}
	}
}

func TestRDMAP_122_EveryOctetOfARangeCounts(t *testing.T) {
	for at := uint64(0xff8); at < 0x1012; at++ {
		for n := 1; n <= 10; n++ {
			allowed := at >= 0x1000 && at+uint64(n) <= 0x1008
			c := converse(t, nil)
			r, _ := c.region(8, nil)
			require.Equal(t, allowed, c.send(tagged(OpWrite, true, RemoteAddr{r.STag(), at}, octets(n))) == nil, "Write of %d at %#x", n, at)
			c = converse(t, nil)
			r, _ = c.region(8, nil)
			request := ReadRequest{Sink: target, Size: uint32(n), Src: RemoteAddr{r.STag(), at}}
			require.Equal(t, allowed, c.send(readRequestOf(1, request)) == nil, "Read of %d at %#x", n, at)
		}
	}
}

package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestRDMAP_43_49_SendIsUntaggedOnQueueZero(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, ""), sendOf(2, "hello"))
	c.wantSegment("a Send may be empty (V6)", unhex("4143 00000000 00000000 00000001 00000000"))
	c.wantSegment("or not", unhex("4143 00000000 00000000 00000002 00000000 68656c6c6f"))
	c.wantDone("both complete", "1 success", "2 success")
}

func TestRDMAP_44_45_47_50_100_107_ARCH_7_8_24_SendTakesOneReceive(t *testing.T) {
	c := converse(t, nil)
	first, _, third := c.receive(8), c.receive(8), c.receive(8)
	c.sends("three Sends, one of them empty",
		untagged(OpSend, QNSend, 1, "hello"), untagged(OpSend, QNSend, 2, ""), untagged(OpSend, QNSend, 3, "all eight"[:8]))
	require.Equal(t, "hello\x00\x00\x00", string(first), "a payload may be shorter than the buffer")
	require.Equal(t, "all eigh", string(third))
	c.wantReceived("each is delivered, in the order sent, with its length",
		Received{Opcode: OpSend, Len: 5}, Received{Opcode: OpSend}, Received{Opcode: OpSend, Len: 8})
	require.Empty(t, c.buffers, "and took one receive")
}

// Where segments overtake each other a Send may be placed before its turn, but not
// delivered.
func TestRDMAP_44_47_107_SendsThatOvertakeEachOther(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	var mem [4][]byte
	for i := range mem {
		mem[i] = c.receive(8)
	}
	h := ddp.UntaggedHeader{RsvdULP: OpSend.control(), MSN: 2}
	first := append(h.Append(nil), "se"...)
	h.Last, h.MO = true, 2
	second := append(h.Append(nil), "cond"...)
	for _, x := range []struct {
		seq     uint64
		segment []byte
	}{
		{4, untagged(OpSend, QNSend, 4, "fourth")}, {2, second}, {3, untagged(OpSend, QNSend, 3, "third")}, {1, first},
	} {
		require.NoError(t, c.take(x.seq, x.segment))
		require.Empty(t, c.received, "what was sent earlier has not come")
	}
	require.NoError(t, c.take(0, untagged(OpSend, QNSend, 1, "first")))
	c.wantReceived("all are delivered, in the order sent",
		Received{Opcode: OpSend, Len: 5}, Received{Opcode: OpSend, Len: 6}, Received{Opcode: OpSend, Len: 5}, Received{Opcode: OpSend, Len: 6})
	for i, want := range []string{"first", "second", "third", "fourth"} {
		require.Equal(t, want, string(mem[i][:len(want)]), "each in a receive of its own")
	}
	require.Empty(t, c.buffers)
}

func TestRDMAP_46_SendLongerThanItsReceive(t *testing.T) {
	c := converse(t, nil)
	mem := make([]byte, 16)
	c.buffers = append(c.buffers, []stag.Span{{Mem: mem, Len: 8}})
	segment := untagged(OpSend, QNSend, 1, octets(9))
	c.wantRefused("it ends the stream", segment, blaming(transport.DDPTooLong, segment))
	require.Equal(t, make([]byte, 16), mem, "no octet is written, least of all past the buffer")
}

func TestSendWithoutReceive(t *testing.T) {
	segment := untagged(OpSend, QNSend, 1, "x")
	c := converse(t, nil)
	c.missing = transport.ErrStall
	require.ErrorIs(t, c.take(0, segment), transport.ErrStall, "the receive queue may hold it back")
	mem := c.receive(1)
	require.NoError(t, c.take(0, segment), "until a receive is posted")
	require.Equal(t, "x", string(mem))
	c = converse(t, nil)
	c.wantRefused("or not", segment, blaming(transport.DDPNoBuffer, segment))
}

func TestRDMAP_51_SolicitedEventIsReported(t *testing.T) {
	c := converse(t, nil)
	for i := range 4 {
		c.receive(0)
		op := OpSend + Opcode(i)
		r, _ := c.region(1, nil)
		st := r.STag()
		if !op.Invalidates() {
			st = 0
		}
		c.sends("each kind of Send", invalidating(op, ddp.MSN(i+1), st, ""))
		c.wantReceived("says if it asks for an event", Received{
			Opcode: op, Solicited: op == OpSendSolicited || op == OpSendSolicitedInvalidate, Invalidated: op.Invalidates(), STag: st,
		})
	}
}

func TestRDMAP_52_53_54_56_89_90_SendInvalidates(t *testing.T) {
	for control, op := range map[string]Opcode{"4144": OpSendInvalidate, "4146": OpSendSolicitedInvalidate} {
		for what, use := range map[string]func(c *conversation, at RemoteAddr){
			"Write": func(c *conversation, at RemoteAddr) {
				c.wantFault("it stays so for a Write", transport.DDPInvalidSTag, tagged(OpWrite, true, at, "x"))
			},
			"Read": func(c *conversation, at RemoteAddr) {
				request := ReadRequest{Sink: target, Size: 1, Src: at}
				c.wantFault("it stays so for a Read", transport.RDMAPInvalidSTag, readRequestOf(1, request))
			},
		} {
			t.Run(control+" "+what, func(t *testing.T) {
				c := converse(t, nil)
				r, mem := c.region(8, nil)
				c.watched = r
				c.receive(8)
				segment := invalidating(op, 1, r.STag(), "bye")
				require.Equal(t, unhex(control), segment[:2])
				c.sends("a Send with Invalidate", segment)
				c.wantReceived("tells which STag it has invalidated", Received{
					Opcode: op, Len: 3, Solicited: op.Solicited(), Invalidated: true, STag: r.STag(),
				})
				require.Equal(t, []bool{false}, c.watchedIs, "which is dead before the message is delivered")
				use(c, RemoteAddr{r.STag(), 0x1000})
				require.Equal(t, make([]byte, 8), mem)
			})
		}
	}
}

func TestRDMAP_55_SendThatMayNotInvalidate(t *testing.T) {
	for what, x := range map[string]struct {
		change func(*stag.Options)
		code   transport.Code
	}{
		"unknown":                {nil, transport.RDMAPOpNoInvalidate},
		"of another PD":          {func(o *stag.Options) { o.Scope = carol }, transport.RDMAPProtNoInvalidate},
		"of another stream":      {func(o *stag.Options) { o.Scope = bob }, transport.RDMAPProtNoInvalidate},
		"of several streams":     {func(o *stag.Options) { o.Scope.Stream = 0 }, transport.RDMAPProtNoInvalidate},
		"without a remote right": {func(o *stag.Options) { o.Access = stag.LocalWrite }, transport.RDMAPProtNoInvalidate},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			r, _ := c.region(8, x.change)
			st := r.STag()
			if x.change == nil {
				require.NoError(t, c.table.Close(t.Context(), r))
			}
			c.receive(8)
			segment := invalidating(OpSendInvalidate, 1, st, "bye")
			c.wantRefused("it ends the stream; there is no RDMA header to report", segment, blaming(x.code, segment))
			require.Empty(t, c.received, "the message is not delivered")
			require.Equal(t, x.change != nil, r.Valid(), "the STag is what it was")
		})
	}
}

func TestLocalInvalidate(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	c.watched = r
	c.post(Request{ID: 1, Kind: KindInvalidate, Invalidate: r.STag()}, sendOf(2, "done"))
	c.wantSegment("nothing is sent for it", untagged(OpSend, QNSend, 1, "done"))
	c.wantDone("it completes in its turn", "1 success", "2 success")
	require.Equal(t, []bool{false, false}, c.watchedIs, "and has taken effect before that")

	c.post(Request{ID: 3, Kind: KindInvalidate, Invalidate: r.STag()})
	require.NoError(t, c.flush())
	c.wantDone("again is no error", "3 success")

	other, _ := c.region(8, func(o *stag.Options) { o.Scope = carol })
	c.post(Request{ID: 4, Kind: KindInvalidate, Invalidate: other.STag()}, sendOf(5, ""))
	err := c.flush()
	require.Error(t, err, "one that is not ours")
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("ends the stream", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("and tells", "4 bind or invalidate error", "5 flushed")
}

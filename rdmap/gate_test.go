package rdmap

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// pass is the first message that opens the gate of the tests.
const pass = "open sesame"

var errVerdict = errors.New("not that one")

// A guarded conversation has a gate, a region that the peer may use for everything, and two
// receives.
type guarded struct {
	*conversation
	verified []string // what Verify was asked about
	opened   int
	pending  bool // what Pending reported when the gate was opened
	region   *stag.Region
	mem      []byte
	receives [2][]byte
}

func gated(t *testing.T, change func(*Config)) *guarded {
	g := new(guarded)
	g.conversation = converse(t, func(c *Config) {
		c.Extensions = []*Extension{{Request: opEcho, Response: opEchoed, MaxRequest: 64, MaxResponse: 64, Serve: func(in *Inbound) {
			t.Error("a request is served")
		}}}
		c.Gate = &Gate{Len: len(pass), Verify: g.verify, Opened: func() { g.opened, g.pending = g.opened+1, g.s.Pending() }}
		if change != nil {
			change(c)
		}
	})
	g.region, g.mem = g.conversation.region(64, nil)
	g.receives = [2][]byte{g.receive(64), g.receive(64)}
	return g
}

func (g *guarded) verify(msg []byte) error {
	g.verified = append(g.verified, string(msg))
	if string(msg) != pass {
		return errVerdict
	}
	return nil
}

// wantUntouched checks that the peer has changed nothing and learnt nothing.
func (g *guarded) wantUntouched(that string) {
	g.Helper()
	require.Equal(g, make([]byte, 64), g.mem, that)
	require.Equal(g, [2][]byte{make([]byte, 64), make([]byte, 64)}, g.receives, that)
	require.Empty(g, g.received, that)
	require.Empty(g, g.terminated, that)
	require.Len(g, g.buffers, 2, that)
	require.Zero(g, g.opened, that)
	require.Zero(g, g.kicks, that)
	_, irq := g.s.Unfinished()
	require.Zero(g, irq, that)
	require.Equal(g, [numOpcodes]Traffic{}, g.s.Stats().In, "%s: and it counts as nothing", that)
}

// at is an address of the region.
func (g *guarded) at(off uint64) RemoteAddr { return RemoteAddr{g.region.STag(), 0x1000 + off} }

// atom is an Atomic Request that adds 1 to the region.
func (g *guarded) atom() []byte { return atomicRequestOf(1, add(g.at(0), 1)) }

// intruders returns segments that come instead of the first message.
func (g *guarded) intruders() map[string][]byte {
	part := func(mo uint32, last bool, payload string) []byte {
		return append(ddp.UntaggedHeader{Last: last, RsvdULP: OpSend.control(), MSN: 1, MO: mo}.Append(nil), payload...)
	}
	return map[string][]byte{
		"a Write":                        tagged(OpWrite, true, g.at(0), "intruder"),
		"a Write of many segments":       tagged(OpWrite, false, g.at(0), "intruder"),
		"an empty Write":                 tagged(OpWrite, true, RemoteAddr{}, ""),
		"a Write to an STag of nothing":  tagged(OpWrite, true, target, pass),
		"a Read Response":                tagged(OpReadResponse, true, g.at(0), pass),
		"a tagged Send":                  tagged(OpSend, true, g.at(0), pass),
		"a Read Request":                 readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: g.at(0)}),
		"an empty Read Request":          readRequestOf(1, ReadRequest{}),
		"an Atomic Request":              g.atom(),
		"the request of an extension":    untagged(opEcho, QNRequest, 1, "hello"),
		"the response of an extension":   untagged(opEchoed, QNResponse, 1, "hello"),
		"an Atomic Response":             atomicResponseOf(1, 0, 0),
		"Immediate Data":                 immediate(1, "12345678"),
		"a Send with Solicited Event":    untagged(OpSendSolicited, QNSend, 1, pass),
		"a Send with Invalidate":         invalidating(OpSendInvalidate, 1, g.region.STag(), pass),
		"an octet too few":               untagged(OpSend, QNSend, 1, pass[1:]),
		"an octet too many":              untagged(OpSend, QNSend, 1, pass+"!"),
		"an empty Send":                  untagged(OpSend, QNSend, 1, ""),
		"the message, but as the second": untagged(OpSend, QNSend, 2, pass),
		"the message, but for QN 1":      untagged(OpSend, QNRequest, 1, pass),
		"the message, but for QN 2":      untagged(OpSend, QNTerminate, 1, pass),
		"the first half of the message":  part(0, false, pass[:5]),
		"the second half of the message": part(5, true, pass[5:]),
		"the message, an octet further":  part(1, true, pass),
		"the message, with more to come": part(0, false, pass),
		"nothing, with more to come":     part(0, false, ""),
		"the message of another version": patch(untagged(OpSend, QNSend, 1, pass), 1, byte(OpSend)),
	}
}

func TestCM_21_NothingButTheFirstMessagePassesTheGate(t *testing.T) {
	for _, window := range []int{0, 8} {
		for what := range gated(t, nil).intruders() {
			g := gated(t, func(c *Config) { c.Window = window })
			g.post(sendOf(1, "of Setup"))
			segment := g.intruders()[what]
			e := g.fault(what, transport.RDMAPStreamCatastrophic, segment)
			require.ErrorIs(t, e, ErrGate, what)
			g.wantUntouched(what)
			require.Empty(t, g.verified, what)
			require.True(t, g.s.Terminate(e), what)
			g.wantTerminate(what, blaming(transport.RDMAPStreamCatastrophic, segment))
			g.sends("what follows is dropped", untagged(OpSend, QNSend, 1, pass))
			g.wantUntouched(what)
			require.Empty(t, g.verified, what)
			require.True(t, g.region.Valid(), what)
			g.s.End()
			g.wantDone(what, "1 flushed")
		}
	}
}

func TestCM_21_WrongFirstMessage(t *testing.T) {
	for _, window := range []int{0, 8} {
		g := gated(t, func(c *Config) { c.Window = window })
		wrong := untagged(OpSend, QNSend, 1, "open barley")
		e := g.fault("the verdict", transport.RDMAPStreamCatastrophic, wrong)
		require.ErrorIs(t, e, ErrGate)
		require.ErrorIs(t, e, errVerdict)
		g.wantUntouched("the verdict")
		require.True(t, g.s.Terminate(e))
		g.wantTerminate("the verdict", blaming(transport.RDMAPStreamCatastrophic, wrong))
		g.sends("there is no second one", untagged(OpSend, QNSend, 1, pass))
		require.Len(t, g.verified, 1)
		g.wantUntouched("there is no second one")
	}
}

// TestTerminateComesBeforeTheGate: no Terminate is answered by another, and it says why the peer
// has not gone on.
func TestTerminateComesBeforeTheGate(t *testing.T) {
	g := gated(t, nil)
	g.sends("a Terminate", terminateOf(bare(transport.MPAInsufficientIRD)))
	require.Len(t, g.terminated, 1)
	require.Equal(t, transport.MPAInsufficientIRD, g.terminated[0].Code)
	require.Zero(t, g.opened)
	g = gated(t, nil)
	g.wantFault("one that is malformed", transport.RDMAPStreamCatastrophic, untagged(OpTerminate, QNTerminate, 1, "x"))
	require.Empty(t, g.terminated)
}

func TestCM_23_ReceivesFollowTheFirstMessage(t *testing.T) {
	g := gated(t, nil)
	g.post(sendOf(1, "of Setup"))
	require.False(t, g.s.Pending(), "what Setup posted waits")
	g.wantIdle("what Setup posted waits")
	g.wantDone("and does not complete")
	g.sends("the first message", untagged(OpSend, QNSend, 1, pass))
	require.Equal(t, []string{pass}, g.verified)
	require.Equal(t, 1, g.opened)
	require.True(t, g.pending, "what was posted can be sent once the opening is told")
	require.Empty(t, g.received, "it makes no completion")
	require.Len(t, g.buffers, 2, "and takes no receive")
	require.Equal(t, Traffic{Messages: 1, Octets: uint64(len(pass))}, g.s.Stats().In[OpSend])
	require.True(t, g.s.Pending())
	g.wantSegment("what Setup posted", untagged(OpSend, QNSend, 1, "of Setup"))
	g.wantDone("what Setup posted", "1 success")
	g.sends("the message behind it", untagged(OpSend, QNSend, 2, "hello"))
	g.wantReceived("the message behind it", Received{Opcode: OpSend, Len: 5})
	require.Equal(t, "hello", string(g.receives[0][:5]))
	g.sends("and all else", tagged(OpWrite, true, g.at(0), "hello"), g.atom())
	require.Equal(t, "hello", string(g.mem[:5]))
	require.Len(t, g.verified, 1, "it is asked once")

	g = gated(t, nil)
	g.sends("the first message", untagged(OpSend, QNSend, 1, pass))
	g.wantFault("a second one is no other message", transport.DDPMSNRange, untagged(OpSend, QNSend, 1, pass))
}

// TestCM_22_WhatIsBehindTheFirstMessageWaitsForTheVerdict, even if both come together.
func TestCM_22_WhatIsBehindTheFirstMessageWaitsForTheVerdict(t *testing.T) {
	run := func(g *guarded, first string) *arrivals {
		return &arrivals{
			untagged(OpSend, QNSend, 1, first), untagged(OpSend, QNSend, 2, "one"), untagged(OpSend, QNSend, 3, "two"),
			tagged(OpWrite, true, g.at(0), "hello"),
		}
	}
	g := gated(t, nil)
	require.NoError(t, g.s.Segments(0, run(g, pass)))
	require.Equal(t, []string{pass}, g.verified)
	require.Len(t, g.received, 2)
	require.Equal(t, "hello", string(g.mem[:5]))

	g = gated(t, nil)
	require.ErrorIs(t, g.s.Segments(0, run(g, "open barley")), errVerdict)
	g.wantUntouched("behind a wrong one nothing is taken")
	require.NoError(t, g.s.Segments(1, run(g, pass)))
	g.wantUntouched("nor later")
}

// TestCM_22_WhatOvertakesTheFirstMessageWaits.
func TestCM_22_WhatOvertakesTheFirstMessageWaits(t *testing.T) {
	for _, first := range []string{pass, "open barley"} {
		g := gated(t, func(c *Config) { c.Window = 8 })
		require.NoError(t, g.take(2, tagged(OpWrite, true, g.at(0), "hello")))
		require.NoError(t, g.take(1, untagged(OpSend, QNSend, 2, "one")))
		require.NoError(t, g.take(3, readRequestOf(1, ReadRequest{Sink: target, Size: 5, Src: g.at(0)})))
		require.NoError(t, g.take(5, tagged(OpWrite, true, target, "no STag of ours")), "it is not even looked up")
		g.wantUntouched("nothing is placed")
		require.Empty(t, g.verified)
		err := g.take(0, untagged(OpSend, QNSend, 1, first))
		if first != pass {
			require.ErrorIs(t, err, errVerdict)
			g.wantUntouched("nor ever will be")
			continue
		}
		require.NoError(t, err)
		g.wantReceived("in their order", Received{Opcode: OpSend, Len: 3})
		require.Equal(t, "hello", string(g.mem[:5]))
		g.wantSegment("and answered", tagged(OpReadResponse, true, target, "hello"))
		require.NoError(t, g.take(7, tagged(OpWrite, true, g.at(8), "early")))
		require.Equal(t, "early", string(g.mem[8:13]), "from then on segments are placed as they come")
		require.Error(t, g.take(4, untagged(OpSend, QNSend, 3, "two")), "and those that were kept are judged")
	}
}

func TestCM_22_WhatWaitsForTheFirstMessageIsBounded(t *testing.T) {
	const size = 1 << 10
	payload := octets(size - ddp.TaggedLen)
	g := gated(t, func(c *Config) { c.Window = math.MaxInt16 })
	for i := range uint64(64) {
		require.NoError(t, g.take(i+1, tagged(OpWrite, true, g.at(0), payload)), "64 KiB in all")
	}
	var e *ddp.SegmentError
	require.ErrorAs(t, g.take(65, tagged(OpWrite, true, RemoteAddr{}, "")), &e, "a segment more")
	require.Equal(t, transport.DDPLocalCatastrophic, e.Code())
	g.wantUntouched("a segment more")

	g = gated(t, func(c *Config) { c.Window = math.MaxInt16 })
	require.NoError(t, g.take(1024, tagged(OpWrite, true, RemoteAddr{}, "")))
	require.ErrorAs(t, g.take(1025, tagged(OpWrite, true, RemoteAddr{}, "")), &e, "too far ahead, so that it is not many small ones either")

	g = gated(t, func(c *Config) { c.Window = math.MaxInt16 })
	require.NoError(t, g.take(0, untagged(OpSend, QNSend, 1, pass)))
	require.NoError(t, g.take(5000, tagged(OpWrite, true, g.at(0), "x")), "and only while the gate is shut")
}

func TestGateDoesNotOutliveTheStream(t *testing.T) {
	g := gated(t, nil)
	g.post(sendOf(1, "of Setup"))
	require.True(t, g.s.Terminate(errBroken), "this side gives up")
	g.wantTerminate("and says so", bare(transport.RDMAPStreamCatastrophic))
	g.sends("the message comes too late", untagged(OpSend, QNSend, 1, pass))
	g.wantUntouched("the message comes too late")
	require.Empty(t, g.verified)
}

func TestCM_44_OpenGateDoesNotAllocate(t *testing.T) {
	skipUnderRace(t)
	table := stag.NewTable()
	r, err := table.Register(make([]byte, 4096), stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice})
	require.NoError(t, err)
	q := &quiet{buffer: []stag.Span{span(r, 0, 4096)}}
	s := New(Config{Table: table, Scope: alice, SendDepth: 64, Receives: q, Events: q, Gate: &Gate{
		Len: len(pass), Verify: func([]byte) error { return nil }, Opened: func() {},
	}})
	llp := &scriptLLP{mulpdu: 1500, discard: true}
	require.NoError(t, s.Segment(0, untagged(OpSend, QNSend, 1, pass)))
	seq, msn := uint64(1), ddp.MSN(2)
	in := untagged(OpSend, QNSend, 0, "hello")
	write := tagged(OpWrite, true, RemoteAddr{r.STag(), 0}, octets(1000))
	op := func() {
		ddp.UntaggedHeader{Last: true, RsvdULP: OpSend.control(), MSN: msn}.Append(in[:0])
		if s.Segment(seq, in) != nil || s.Segment(seq+1, write) != nil {
			panic("refused")
		}
		s.BatchDone()
		seq, msn = seq+2, msn+1
		if _, err := s.Post(1, func(_ int, p *Request) error {
			p.Kind, p.Inlined, p.Inline = KindSend, true, append(p.Inline, "hello"...)
			return nil
		}); err != nil {
			panic(err)
		}
		cycle(s, llp)
	}
	for range 100 {
		op()
	}
	require.Zero(t, testing.AllocsPerRun(100, op))
}

func TestCM_20_FirstGoesAheadOfEverything(t *testing.T) {
	first := []byte(pass)
	c := converse(t, func(cfg *Config) { cfg.First, cfg.SendDepth = first, 2 })
	clear(first)
	c.post(sendOf(1, "hello"), writeOf(2, target, "x"))
	c.sends("a Read of the peer", readRequestOf(1, ReadRequest{Sink: target}))
	c.wantSegment("the first message, MSN 1", untagged(OpSend, QNSend, 1, pass))
	c.wantSegment("then the response, in its turn", tagged(OpReadResponse, true, target, ""))
	c.wantDone("it makes no completion", "1 success", "2 success")
	c.wantSegment("the requests follow without waiting", untagged(OpSend, QNSend, 2, "hello"))
	posted, completed := c.s.Counts()
	require.Equal(t, [2]uint64{3, 3}, [2]uint64{posted, completed})

	c = converse(t, func(cfg *Config) { cfg.First = []byte(pass) })
	require.True(t, c.s.Terminate(&transport.Fault{Code: transport.MPANoRTR}))
	c.wantTerminate("a Terminate takes its place", bare(transport.MPANoRTR))
}

// TestCM_25_FirstAndGate: what one stream sends first opens the gate of the other, and all that follows passes.
func TestCM_25_FirstAndGate(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.First = []byte(pass) })
	g := gated(t, nil)
	c.post(writeOf(1, g.at(3), "hello"), sendOf(2, "it is there"))
	require.NoError(t, c.flush())
	for _, segment := range c.llp.sent {
		require.NoError(t, g.send(segment))
	}
	require.Equal(t, 1, g.opened)
	require.Equal(t, "hello", string(g.mem[3:8]))
	g.wantReceived("the message behind it", Received{Opcode: OpSend, Len: 11})
	require.Equal(t, MaxFirst, 110, "it fits the least MULPDU")
}

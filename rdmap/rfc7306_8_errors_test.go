package rdmap

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 7306 section 8: errors.

func TestEXT_44_45_46_67_TargetThatIsNotAligned(t *testing.T) {
	for off := uint64(1); off < 8; off++ {
		c, at, _ := counter(t, nil)
		r, _, _ := c.table.Pin(alice, at.STag, stag.RemoteAtomic, at.TO, 64)
		mem := r.Bytes(0, 64)
		r.Unpin()
		before := string(mem)
		segment := atomicRequestOf(1, add(RemoteAddr{at.STag, at.TO + off}, 1))
		c.wantRefused("0/2/07, with the DDP header and no RDMA header", segment, blaming(transport.RDMAPStreamCatastrophic, segment))
		require.Equal(t, before, string(mem), "memory is as it was")
	}
}

func TestEXT_67_69_TargetIsCheckedFirst(t *testing.T) {
	type target struct {
		code transport.Code
		at   func(c *conversation) RemoteAddr
	}
	region := func(change func(*stag.Options)) func(*conversation) RemoteAddr {
		return func(c *conversation) RemoteAddr {
			r, _ := c.region(16, change)
			return RemoteAddr{r.STag(), r.BaseTO()}
		}
	}
	beyond := func(by uint64) func(*conversation) RemoteAddr {
		return func(c *conversation) RemoteAddr {
			r, _ := c.region(16, nil)
			return RemoteAddr{r.STag(), r.BaseTO() + by}
		}
	}
	for what, x := range map[string]target{
		"no such STag": {transport.RDMAPInvalidSTag, func(*conversation) RemoteAddr { return RemoteAddr{0x01020304, 0} }},
		"an STag that was invalidated": {transport.RDMAPInvalidSTag, func(c *conversation) RemoteAddr {
			r, _ := c.region(16, nil)
			require.Equal(c, stag.None, c.table.InvalidateSTag(alice, r.STag(), true))
			return RemoteAddr{r.STag(), 0x1000}
		}},
		"another key": {transport.RDMAPInvalidSTag, func(c *conversation) RemoteAddr {
			r, _ := c.region(16, nil)
			return RemoteAddr{r.STag() ^ 1, 0x1000}
		}},
		"another stream":       {transport.RDMAPNotAssociated, region(func(o *stag.Options) { o.Scope = bob })},
		"another PD":           {transport.RDMAPNotAssociated, region(func(o *stag.Options) { o.Scope = carol })},
		"no right":             {transport.RDMAPAccess, region(func(o *stag.Options) { o.Access = stag.LocalWrite })},
		"every other right":    {transport.RDMAPAccess, region(func(o *stag.Options) { o.Access = stag.LocalWrite | stag.RemoteRead | stag.RemoteWrite })},
		"after the end":        {transport.RDMAPBounds, beyond(16)},
		"partly behind":        {transport.RDMAPBounds, beyond(12)},
		"before the beginning": {transport.RDMAPBounds, beyond(math.MaxUint64 - 7)},
		"TO wraps": {transport.RDMAPWrap, func(c *conversation) RemoteAddr {
			at := beyond(0)(c)
			return RemoteAddr{at.STag, math.MaxUint64 - 6}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			segment := atomicRequestOf(1, add(x.at(c), 1))
			c.wantRefused("it is refused at once, without an RDMA header", segment, blaming(x.code, segment))
		})
	}
	c := converse(t, nil)
	r, mem := c.region(16, func(o *stag.Options) { o.Access = stag.LocalWrite | stag.RemoteAtomic })
	c.sends("RemoteAtomic is all it takes", atomicRequestOf(1, add(RemoteAddr{r.STag(), 0x1008}, 1)))
	c.wantSegment("to be served", atomicResponseOf(1, 0xabcd0001, 0))
	require.Equal(t, uint64(1), *word(mem, 8))
}

func TestEXT_67_69_TargetIsInvalidatedBeforeItsTurn(t *testing.T) {
	c, at, value := counter(t, nil)
	segment := atomicRequestOf(1, add(at, 1))
	c.sends("a request that is right", segment)
	require.Equal(t, stag.None, c.table.InvalidateSTag(alice, at.STag, false))
	err := c.flush()
	require.Error(t, err)
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("and no longer is when its turn comes", blaming(transport.RDMAPInvalidSTag, segment))
	require.Equal(t, uint64(100), *value)
}

func TestEXT_66_ErrorWhileAMessageIsMade(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.ORD = 0 })
	c.post(sendOf(1, ""), atomicOf(2, add(target, 1)), immediateOf(3, ""))
	err := c.flush()
	require.Error(t, err)
	require.True(t, c.s.Terminate(err))
	c.wantSegment("what was posted before", untagged(OpSend, QNSend, 1, ""))
	c.wantTerminate("instead of the message, without headers", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("the ULP is told", "1 success", "2 local operation error", "3 flushed")
}

// oneOfRFC7306 is each message as the peer may send it when one request is
// outstanding.
func oneOfRFC7306(at RemoteAddr) map[string][]byte {
	return map[string][]byte{
		"Immediate":                      immediate(1, "12345678"),
		"Immediate with Solicited Event": untagged(OpImmediateSolicited, QNSend, 1, "12345678"),
		"Atomic Request":                 atomicRequestOf(1, add(at, 1)),
		"Atomic Response":                atomicResponseOf(1, 1, 5),
	}
}

func TestEXT_1_2_67_68_FieldsOfEveryMessageAreChecked(t *testing.T) {
	spoil := map[string]struct {
		code  transport.Code
		spoil func(segment []byte) []byte
	}{
		"nothing":            {0, func(g []byte) []byte { return g }},
		"RDMAP version 0":    {transport.RDMAPVersion, func(g []byte) []byte { return patch(g, 1, g[1]&0x3f) }},
		"RDMAP version 2":    {transport.RDMAPVersion, func(g []byte) []byte { return patch(g, 1, g[1]&0x3f|0x80) }},
		"DDP version 0":      {transport.DDPUntaggedVersion, func(g []byte) []byte { return patch(g, 0, g[0]&^3) }},
		"another QN":         {transport.RDMAPOpcode, func(g []byte) []byte { return patch(g, 9, (g[9]+1)%4) }},
		"a QN out of range":  {transport.DDPQueue, func(g []byte) []byte { return patch(g, 6, 1) }},
		"the MSN to come":    {transport.DDPMSNRange, func(g []byte) []byte { return patch(g, 13, 2) }},
		"the MSN before":     {transport.DDPMSNRange, func(g []byte) []byte { return patch(g, 13, 0) }},
		"an MO":              {transport.DDPOffset, func(g []byte) []byte { return patch(g, 17, 1) }},
		"tagged":             {transport.RDMAPOpcode, func(g []byte) []byte { return patch(g, 0, g[0]|0x80) }},
		"not the last":       {transport.RDMAPStreamCatastrophic, func(g []byte) []byte { return patch(g, 0, g[0]&^0x40) }},
		"an octet too long":  {transport.DDPTooLong, func(g []byte) []byte { return append(patch(g, 0, g[0]), 0) }},
		"an octet too short": {transport.RDMAPStreamCatastrophic, func(g []byte) []byte { return patch(g, 0, g[0])[:len(g)-1] }},
	}
	for message := range oneOfRFC7306(target) {
		for what, x := range spoil {
			t.Run(message+", "+what, func(t *testing.T) {
				c, at, value := counter(t, nil)
				c.receive(64)
				c.post(atomicOf(1, add(target, 1)))
				require.NoError(t, c.flush())
				c.llp.sent = nil
				segment := x.spoil(oneOfRFC7306(at)[message])
				if x.code == 0 {
					c.sends("a good one is taken", segment)
					return
				}
				c.wantRefused("it is refused", segment, blaming(x.code, segment))
				require.Equal(t, uint64(100), *value)
				require.Empty(t, c.received)
				require.Empty(t, c.olds)
			})
		}
	}
}

func TestEXT_2_QueueOfEachMessage(t *testing.T) {
	c, at, _ := counter(t, nil)
	c.sends("a request", atomicRequestOf(1, add(at, 1)))
	c.post(immediateOf(1, ""), immediateOf(2, "").with(Solicited), atomicOf(3, add(at, 1)))
	require.NoError(t, c.flush())
	got := map[Opcode]ddp.QN{}
	for _, g := range c.llp.sent {
		require.False(t, ddp.IsTagged(g))
		h, err := ddp.ParseUntagged(g)
		require.NoError(t, err)
		require.Zero(t, h.RsvdULPWord)
		got[Opcode(g[1]&0x0f)] = h.QN
		require.Equal(t, byte(0x40), g[1]&0xf0, "RV is 01b, and what is reserved is zero")
	}
	require.Equal(t, map[Opcode]ddp.QN{0x8: 0, 0x9: 0, 0xa: 1, 0xb: 3}, got)
}

func TestNothingIsTriedByItself(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, ""), writeOf(2, target, ""), readOf(3, target))
	require.NoError(t, c.flush())
	for _, g := range c.llp.sent {
		require.Less(t, opcodeOf(g[1]), OpImmediate, "the extensions are used only where they are posted")
	}
}

func TestEXT_7_PeerWithoutTheExtensions(t *testing.T) {
	c := converse(t, nil)
	c.post(sendOf(1, ""), atomicOf(2, add(target, 1)), atomicOf(3, add(target, 1)))
	require.NoError(t, c.flush())
	c.sends("it calls the opcode unexpected", terminateOf(blaming(transport.RDMAPOpcode, c.llp.sent[1])))
	c.s.End()
	c.wantDone("and that is what the request tells", "1 success", "2 remote invalid request 0206", "3 flushed")
}

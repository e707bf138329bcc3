package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Read Responses where segments overtake each other: each must lie in the sink of a Read,
// and in its turn continue the oldest.

// An endingQueue ends the stream instead of taking a message.
type endingQueue struct {
	*conversation
	asked int
}

func (q *endingQueue) Deliver(Received) {
	q.asked++
	q.s.Terminate(errBroken)
}

// TestMessageThatEndsTheStreamIsTheLast: one that has come early, and is placed already, is not delivered behind it.
func TestMessageThatEndsTheStreamIsTheLast(t *testing.T) {
	q := new(endingQueue)
	q.conversation = converse(t, func(c *Config) { c.Window, c.Receives = 8, q })
	q.receive(8)
	q.receive(8)
	require.NoError(t, q.take(1, untagged(OpSend, QNSend, 2, "early")))
	require.NoError(t, q.take(0, untagged(OpSend, QNSend, 1, "first")))
	require.Equal(t, 1, q.asked)
	q.wantTerminate("it is told", bare(transport.RDMAPStreamCatastrophic))
}

// reading has two Reads outstanding: of 20 octets to octet 4 of one region, and of 32 to
// another.
func reading(t *testing.T) (c *conversation, a, b *stag.Region, memA, memB []byte) {
	c = converse(t, func(o *Config) { o.Window = 8 })
	a, memA = c.region(32, nil)
	b, memB = c.region(32, nil)
	c.post(readOf(1, target, span(a, 4, 20)), readOf(2, target, span(b, 0, 32)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	return c, a, b, memA, memB
}

func TestRDMAP_40_111_ResponsesInAnyOrder(t *testing.T) {
	c, a, b, memA, memB := reading(t)
	data := octets(52)
	in := func(r *stag.Region, last bool, to uint64, payload string) []byte {
		return tagged(OpReadResponse, last, RemoteAddr{r.STag(), 0x1000 + to}, payload)
	}
	require.NoError(t, c.take(3, in(b, true, 12, data[32:])), "the end of the second")
	require.NoError(t, c.take(1, in(a, true, 14, data[10:20])), "the end of the first")
	require.Empty(t, c.done, "nothing completes before its turn")
	require.NoError(t, c.take(0, in(a, false, 4, data[:10])))
	c.wantDone("the first", "1 success")
	require.NoError(t, c.take(2, in(b, false, 0, data[20:32])))
	c.wantDone("the second", "2 success")
	require.Equal(t, "\x00\x00\x00\x00"+data[:20]+"\x00\x00\x00\x00\x00\x00\x00\x00", string(memA))
	require.Equal(t, data[20:], string(memB))
}

func TestRDMAP_41_42_ResponseThatIsInNoSink(t *testing.T) {
	whole := octets(20)
	for what, x := range map[string]struct {
		code    transport.Code
		segment func(c *conversation, a, b *stag.Region) []byte
	}{
		"to a region that no Read has named": {transport.DDPBounds, func(c *conversation, _, _ *stag.Region) []byte {
			other, _ := c.region(32, nil)
			return tagged(OpReadResponse, true, RemoteAddr{other.STag(), 0x1004}, whole)
		}},
		"an octet before the sink": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1003}, whole[:8])
		}},
		"an octet beyond it": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1005}, whole)
		}},
		"all of it beyond": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1019}, whole[:2])
		}},
		"from its very end": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1018}, whole[:1])
		}},
		"longer than it": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1004}, octets(21))
		}},
		"where the sum wraps": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), ^uint64(3)}, whole[:8])
		}},
		"with an end that is not its end": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, true, RemoteAddr{a.STag(), 0x1004}, whole[:19])
		}},
		"of the second before the first": {transport.DDPInvalidSTag, func(_ *conversation, _, b *stag.Region) []byte {
			return tagged(OpReadResponse, true, RemoteAddr{b.STag(), 0x1000}, octets(32))
		}},
		"not from its beginning": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1008}, whole[:8])
		}},
		"of no octets where 20 are due": {transport.DDPBounds, func(_ *conversation, a, _ *stag.Region) []byte {
			return tagged(OpReadResponse, true, RemoteAddr{a.STag(), 0x1004}, "")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			c, a, b, memA, memB := reading(t)
			mayPlace := what == "of the second before the first" || what == "not from its beginning"
			c.wantFault(what, x.code, x.segment(c, a, b))
			require.Equal(t, make([]byte, 4), memA[:4], "nothing before the sink")
			require.Equal(t, make([]byte, 8), memA[24:], "nor after it")
			if !mayPlace { // else it is in a sink, whose octets are the Read's
				require.Equal(t, make([]byte, 32), memA)
				require.Equal(t, make([]byte, 32), memB)
			}
			require.Empty(t, c.done)
		})
	}
	c := converse(t, func(o *Config) { o.Window = 8 })
	r, _ := c.region(32, nil)
	c.wantFault("no Read is outstanding", transport.RDMAPOpcode, tagged(OpReadResponse, true, RemoteAddr{r.STag(), 0x1000}, "x"))
	c = converse(t, func(o *Config) { o.Window = 8 })
	r, _ = c.region(32, nil)
	c.post(atomicOf(1, add(target, 1)))
	require.NoError(t, c.flush())
	c.wantFault("nor is what is outstanding one", transport.DDPBounds, tagged(OpReadResponse, true, RemoteAddr{r.STag(), 0x1000}, "x"))
}

// TestRDMAP_42_OctetsTwiceDoNotMakeUpForThoseThatAreMissing.
func TestRDMAP_42_OctetsTwiceDoNotMakeUpForThoseThatAreMissing(t *testing.T) {
	c, a, _, _, _ := reading(t)
	first := tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1004}, octets(10))
	c.sends("the first half", first)
	c.wantFault("and again", transport.DDPBounds, first)
	require.Empty(t, c.done)
}

// TestWhatIsExpected: the responses to the Reads that are outstanding, where they come in
// order and nothing else can be in between.
func TestWhatIsExpected(t *testing.T) {
	c := converse(t, nil)
	a, _ := c.region(32, nil)
	b, _ := c.region(32, nil)
	u := upper{c.s}
	none := func(that string, k int) {
		t.Helper()
		_, _, _, ok := u.PredictTagged(k)
		require.False(t, ok, that)
	}
	none("nothing is outstanding", 0)
	c.post(readOf(1, target, span(a, 4, 20)), readOf(2, target, span(b, 1, 30)), atomicOf(3, add(target, 1)), readOf(4, target, span(a, 0, 1)))
	require.NoError(t, c.flush())
	want := func(k int, r *stag.Region, to, left uint64) {
		t.Helper()
		h, access, n, ok := u.PredictTagged(k)
		require.True(t, ok)
		require.Equal(t, tagged(OpReadResponse, false, RemoteAddr{r.STag(), 0x1000 + to}, ""), h.Append(nil))
		require.Equal(t, stag.LocalWrite, access)
		require.Equal(t, left, n)
	}
	want(0, a, 4, 20)
	want(1, b, 1, 30)
	none("an atomic operation has no sink", 2)
	want(3, a, 0, 1)
	none("there are no more", 4)
	c.sends("a part of the first", tagged(OpReadResponse, false, RemoteAddr{a.STag(), 0x1004}, octets(7)))
	want(0, a, 11, 13)
	c.sends("the rest", tagged(OpReadResponse, true, RemoteAddr{a.STag(), 0x100b}, octets(13)))
	want(0, b, 1, 30)

	c, _, _, _, _ = reading(t)
	u = upper{c.s}
	none("where segments overtake each other", 0)
}

// TestEarlySegmentIsCountedOnce, although it is checked again when its turn has come.
func TestEarlySegmentIsCountedOnce(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	sink, mem := c.region(8, nil)
	require.NoError(t, c.take(1, tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "abcd")), "no Read is outstanding yet")
	require.NoError(t, c.take(2, tagged(OpWrite, true, RemoteAddr{sink.STag(), 0x1004}, "efgh")))
	c.post(readOf(1, target, span(sink, 0, 4)))
	require.NoError(t, c.flush())
	require.NoError(t, c.take(0, tagged(OpWrite, true, RemoteAddr{}, "")))
	c.wantDone("it is the response", "1 success")
	require.Equal(t, "abcdefgh", string(mem))
	s := c.s.Stats()
	require.Equal(t, Traffic{1, 4}, s.In[OpReadResponse])
	require.Equal(t, Traffic{2, 4}, s.In[OpWrite])
}

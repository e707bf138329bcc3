package rdmap

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

func TestPostStopsAtTheFirstError(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.SendDepth = 3 })
	refused := errors.New("refused")
	n, err := c.s.Post(5, func(i int, r *Request) error {
		r.Kind, r.ID = KindSend, uint64(i)
		if i == 2 {
			r.Inline, r.Inlined = append(r.Inline, "leftover"...), true
			return refused
		}
		return nil
	})
	require.ErrorIs(t, err, refused)
	require.Equal(t, 2, n, "those before it are queued")
	n, err = c.tryPost(sendOf(2, ""), sendOf(3, ""))
	require.ErrorIs(t, err, ErrQueueFull)
	require.Equal(t, 1, n, "as many as there is room for")
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 3)
	require.Len(t, c.llp.sent[2], 18, "nothing is left of the request that was refused")
	c.wantDone("only those complete", "0 success", "1 success", "2 success")
}

func TestPostRefusesWhatNoStreamCanDo(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	for why, bad := range map[string]Request{
		"kind 0: there is no such kind":  {},
		"kind 10: there is no such kind": {Kind: KindExtension + 1},
		"RDMA Read: the sink of a Read must be one span of a region, not 2 octets in 2 spans": readOf(1, target, span(r, 0, 1), span(r, 1, 1)),
		"RDMA Read: the sink of a Read must be one span of a region, not 1 octets in 1 spans": readOf(1, target, stag.Span{Mem: make([]byte, 1), Len: 1}),
		"Atomic: 3 octets inline, an Atomic Request has 52":                                   {Kind: KindAtomic, Inline: []byte("123")},
		"Register: Enable is not set":                                                         {Kind: KindRegister},
		"Bind: Enable is not set":                                                             {Kind: KindBind, Spans: []stag.Span{span(r, 0, 1)}},
		"Bind: a window is bound to one region":                                               {Kind: KindBind, Enable: r},
		"Extension: Ext is not set":                                                           {Kind: KindExtension},
		"Extension: 2 octets inline, the extension accepts at most 1":                         {Kind: KindExtension, Ext: &Extension{MaxRequest: 1}, Inline: []byte("12")},
		"RDMA Write: 4294967296 octets, a message has at most 4294967295":                     {Kind: KindWrite, Spans: []stag.Span{span(r, 0, math.MaxInt32), span(r, 0, math.MaxInt32), span(r, 0, 2)}},
		"Send: Immediate Data can follow a Write only":                                        sendOf(1, "").with(WithImmediate),
	} {
		n, err := c.tryPost(bad)
		require.ErrorIs(t, err, ErrRequest)
		require.EqualError(t, err, "rdmap: invalid request: "+why)
		require.Zero(t, n, why)
	}
	c.wantIdle("nothing is queued")
}

// TestRequestsAreZeroedForTheirNextUse: whatever the poster has filled in, even for a Send, of which only some fields are
// reset.
func TestRequestsAreZeroedForTheirNextUse(t *testing.T) {
	var first []string // that a Send may use
	for of, i := reflect.TypeFor[Request](), 0; of.Field(i).Name != "reply"; i++ {
		if f := of.Field(i); f.IsExported() {
			first = append(first, f.Name)
		}
	}
	require.Equal(t, []string{
		"Kind", "Flags", "Inlined", "Class", "InRun", "Answered", "Bits", "Invalidate", "ID", "Len", "Spans", "Tag", "Posted", "Inline",
	}, first, "a new field that a Send may use is reset in resetSend, and set below; other fields stand behind reply")
	c := converse(t, func(cfg *Config) { cfg.SendDepth = 1 })
	r, _ := c.region(8, nil)
	for round := range 3 {
		_, err := c.s.Post(1, func(_ int, q *Request) error {
			q.Spans, q.Inline, q.reply = nil, nil, nil
			require.Equal(t, Request{}, *q, "round %d", round)
			q.Kind, q.Flags, q.Inlined, q.Class, q.Bits, q.Invalidate = KindSend, Solicited|Invalidating, round == 1, 3, 4, 5
			q.ID, q.Tag, q.Posted = 6, "7", 8
			q.Spans = []stag.Span{span(r, 0, 8)}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, c.flush())
	}
	require.Len(t, c.done, 3)
}

func TestQueueGrowsWhileItIsInUse(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.SendDepth, cfg.ORD = 1000, 1000 })
	next := uint64(0)
	for round := range 12 {
		for range 10 * (round + 1) {
			c.post(readOf(next, target))
			next++
		}
		_, err := c.s.Fill(c.llp)
		require.NoError(t, err)
		c.post(sendOf(next, ""))
		next++
		require.NoError(t, c.flush())
		for range 8 {
			c.sends("a Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
		}
	}
	for c.s.Outstanding() > 0 {
		c.sends("a Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	}
	require.Len(t, c.done, int(next))
	for i, line := range c.done {
		require.Regexp(t, "^"+itoa(i)+" success$", line)
	}
}

func TestStats(t *testing.T) {
	c := oneOfEach(t)
	s := c.s.Stats()
	require.Equal(t, Traffic{1, 8}, s.Out[OpWrite])
	require.Equal(t, Traffic{1, 28}, s.Out[OpReadRequest])
	require.Equal(t, Traffic{1, 8}, s.Out[OpReadResponse])
	require.Equal(t, Traffic{1, 5}, s.Out[OpSend])
	require.Equal(t, Traffic{1, 4}, s.Out[OpTerminate])
	require.Equal(t, Traffic{1, 28}, s.In[OpReadRequest])

	c = converse(t, nil)
	r, _ := c.region(8, nil)
	c.receive(8)
	c.post(readOf(1, target, span(r, 0, 3)))
	require.NoError(t, c.flush())
	a := RemoteAddr{r.STag(), 0x1000}
	c.sends("one of each", tagged(OpWrite, false, a, "12"), tagged(OpWrite, true, RemoteAddr{a.STag, a.TO + 2}, "3456"),
		tagged(OpReadResponse, true, a, "123"), untagged(OpSend, QNSend, 1, "hello"), terminateOf(bare(0)))
	s = c.s.Stats()
	require.Equal(t, Traffic{1, 6}, s.In[OpWrite])
	require.Equal(t, Traffic{1, 3}, s.In[OpReadResponse])
	require.Equal(t, Traffic{1, 5}, s.In[OpSend])
	require.Equal(t, Traffic{1, 4}, s.In[OpTerminate])
}

func TestNames(t *testing.T) {
	require.Equal(t, "RDMA Read Response", OpReadResponse.String())
	require.Equal(t, "opcode 0xf", Opcode(0xf).String())
	require.Equal(t, "flushed", StatusFlushed.String())
	require.Equal(t, "Status(99)", Status(99).String())
}

package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// The Sends that wait behind the first go out in one loop, which must leave to others
// what is not its own.
func TestRDMAP_8_17_43_SendsGoOutTogether(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "in place")
	inPlace := Request{ID: 3, Kind: KindSend, Spans: []stag.Span{span(r, 3, 5)}}
	parts := Request{ID: 6, Kind: KindSend, Spans: []stag.Span{span(r, 0, 2), span(r, 3, 1)}}
	target := sendOf(5, "i").with(Invalidating)
	target.Invalidate = 0x01020304
	c.post(sendOf(1, "a"), sendOf(2, "bb"), inPlace, sendOf(4, "s").with(Solicited), target, parts, sendOf(7, ""), sendOf(8, "z"))
	for i, want := range []string{
		"4143 00000000 00000000 00000001 00000000 61",
		"4143 00000000 00000000 00000002 00000000 6262",
		"4143 00000000 00000000 00000003 00000000 706c616365",
		"4145 00000000 00000000 00000004 00000000 73",
		"4144 01020304 00000000 00000005 00000000 69",
		"4143 00000000 00000000 00000006 00000000 696e70",
		"4143 00000000 00000000 00000007 00000000",
		"4143 00000000 00000000 00000008 00000000 7a",
	} {
		c.wantSegment("each as if it were alone", unhex(t, want))
		if i == 0 {
			c.wantDone("and all complete", "1 success", "2 success", "3 success", "4 success", "5 success", "6 success", "7 success", "8 success")
			require.EqualValues(t, 6, c.s.Stats().Out[OpSend].Messages)
			require.EqualValues(t, 12, c.s.Stats().Out[OpSend].Octets)
		}
	}
	require.NoError(t, c.table.Close(t.Context(), r), "nothing is held any more")
}

// A Send that is longer than a segment, and one whose region was invalidated, are not for
// the loop.
func TestRDMAP_82_SendBehindOthersThatCannotBeSent(t *testing.T) {
	c := converse(t, nil)
	c.llp.mulpdu = 18 + 4
	r, _ := c.region(8, nil)
	c.post(sendOf(1, "a"), sendOf(2, "long Send"), sendOf(3, "b"), Request{ID: 4, Kind: KindSend, Spans: []stag.Span{span(r, 0, 1)}}, sendOf(5, "c"))
	require.NoError(t, c.table.Invalidate(t.Context(), r))
	require.ErrorIs(t, c.flush(), stag.ErrInvalid)
	require.Len(t, c.llp.sent, 5)
	c.wantDone("what came before it is out", "1 success", "2 success", "3 success")
}

// arrivals is the segments that come together.
type arrivals [][]byte

func (a *arrivals) Next() []byte {
	if len(*a) == 0 {
		return nil
	}
	next := (*a)[0]
	*a = (*a)[1:]
	return next
}

func TestRDMAP_44_51_53_SendsComeTogether(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(24, nil)
	bound, _ := c.region(8, nil)
	for i := range 6 {
		c.buffers = append(c.buffers, []stag.Span{span(r, 4*i, 4)})
	}
	run := &arrivals{
		untagged(OpSend, QNSend, 2, "two"), untagged(OpSendSolicited, QNSend, 3, "!"), untagged(OpSendSolicited, QNSend, 4, "!!"),
		invalidating(OpSendInvalidate, 5, bound.STag(), "bye"),
	}
	n, rest := c.s.Messages(0, untagged(OpSend, QNSend, 1, "one"), run)
	require.Equal(t, 2, n, "those of one kind")
	c.wantReceived("are delivered", Received{Opcode: OpSend, Len: 3}, Received{Opcode: OpSend, Len: 3})
	n, rest = c.s.Messages(2, rest, run)
	require.Equal(t, 2, n, "and then those of another")
	c.wantReceived("ask for events", Received{Opcode: OpSendSolicited, Len: 1, Solicited: true}, Received{Opcode: OpSendSolicited, Len: 2, Solicited: true})
	n, rest = c.s.Messages(4, rest, run)
	require.Zero(t, n, "a Send that invalidates comes alone")
	require.NoError(t, c.take(4, rest))
	require.False(t, bound.Valid())
	require.Equal(t, "one\x00two\x00!\x00\x00\x00!!\x00\x00bye\x00", string(mem[:20]))
	require.EqualValues(t, 2, c.s.Stats().In[OpSend].Messages)
	require.EqualValues(t, 3, c.s.Stats().In[OpSendSolicited].Octets)
}

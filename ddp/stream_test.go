package ddp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A mixed stream, from one end to the other.
func TestMessagesGetAcross(t *testing.T) {
	c := converse(t, 0)
	region, mem := c.region(5000, nil)
	first, second := make([]byte, 1000), make([]byte, 3000)
	c.post(0, first, second)
	var s Sender
	l := &scriptLLP{mulpdu: 1500, capacity: 2}
	write, send := octets(4000), octets(3500)
	emit(t, &s, l, &Message{Tagged: true, RsvdULP: 0x40, STag: region.STag(), TO: 0x1100, Source: plain(write)})
	emit(t, &s, l, &Message{RsvdULP: 0x43, MSN: s.NextMSN(0), Source: plain(send)})
	for _, b := range l.sent {
		c.sends("every segment is taken", b)
	}
	require.Equal(t, write, mem[0x100:0x100+4000], "the Write is where it belongs")
	require.Equal(t, send, append(first, second[:2500]...), "the Send is scattered over its buffer")
	c.wantDelivered("both are delivered, in order",
		"tagged stag="+region.STag().String()+" ulp=40", "qn=0 msn=1 len=3500 ulp=43/00000000")
}

func TestQueueIsBoundOnce(t *testing.T) {
	c := converse(t, 0)
	c.bind(0)
	require.Panics(t, func() { c.s.Bind(0, c.queues[0]) }, "two queues for one QN is a mistake of the program")
}

package ddp

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/transport"
)

func TestARCH_26_MaxSizesLeaveRoomForTheHeaders(t *testing.T) {
	l := &scriptLLP{mulpdu: 1000}
	require.Equal(t, MaxSizes{Untagged: 1000 - 18, Tagged: 1000 - 14}, MaxSizesOf(l))
	for what, m := range map[string]*Message{
		"untagged": {Source: plain(octets(982))},
		"tagged":   {Tagged: true, Source: plain(octets(986))},
	} {
		l.sent = nil
		emit(t, new(Sender), l, m)
		require.Len(t, l.sent, 1, "%s: so long a message is one segment", what)
		one := *m
		one.sent, one.Source = 0, plain(append(octets(int(m.sent)), 0))
		l.sent = nil
		emit(t, new(Sender), l, &one)
		require.Len(t, l.sent, 2, "%s: one octet more takes another", what)
	}
	l.mulpdu = 500
	require.Equal(t, MaxSizes{Untagged: 482, Tagged: 486}, MaxSizesOf(l), "they follow the LLP")
	l.mulpdu = 10
	require.Zero(t, MaxSizesOf(l))
}

// TestARCH_27_UpperLayerThatIsNotRDMAP: with queues and RsvdULP of its own, over a
// layer that reorders.
func TestARCH_27_UpperLayerThatIsNotRDMAP(t *testing.T) {
	for seed := range uint64(20) {
		near, far := recordpipe.New(recordpipe.Options{MaxULPDU: 100, Window: 8, Seed: seed})
		c := converse(t, 64)
		region, mem := c.region(1000, nil)
		const news, orders = QN(7), QN(0xffffffff)
		first, second, third := make([]byte, 300), make([]byte, 300), make([]byte, 300)
		c.post(news, first, second)
		c.post(orders, third)
		c.bind(1)
		var s Sender
		for _, m := range []*Message{
			{QN: news, MSN: s.NextMSN(news), RsvdULP: 0xff, RsvdULPWord: 0x01020304, Source: plain(octets(250))},
			{Tagged: true, RsvdULP: 0xaa, STag: region.STag(), TO: 0x1000, Source: plain(octets(1000))},
			{QN: orders, MSN: s.NextMSN(orders), RsvdULP: 0, RsvdULPWord: 0xffffffff, Source: plain(octets(300))},
		} {
			require.NoError(t, s.Send(far, m))
		}
		require.NoError(t, far.CloseSend())
		var err error
		for err == nil {
			err = near.Receive(&placer{c.s}, transport.Park)
		}
		require.Equal(t, io.EOF, err)
		require.Equal(t, octets(1000), mem)
		require.Equal(t, octets(250), first[:250])
		require.Equal(t, octets(300), third)
		c.wantDelivered("in the order of the sender",
			"qn=7 msn=1 len=250 ulp=ff/01020304", "tagged stag="+region.STag().String()+" ulp=aa", "qn=4294967295 msn=1 len=300 ulp=00/ffffffff")
	}
}

// A placer is a Stream as a transport.Placer.
type placer struct{ *Stream }

func (p *placer) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(p, seq, batch)
}

package rdmap

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// draft-hilland-rddp-verbs, where no test of RDMAP shows it already.

// TestVERBS_41_TerminateIsNotAnswered: nor is an error that comes after it, or one that this
// side meets afterwards.
func TestVERBS_41_TerminateIsNotAnswered(t *testing.T) {
	c := converse(t, nil)
	c.post(readOf(1, target))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.sends("the peer ends the stream", terminateOf(bare(transport.RDMAPStreamCatastrophic)))
	c.sends("what comes after that is not looked at", untagged(OpWrite, QNSend, 1, ""))
	require.False(t, c.s.Terminate(errors.New("an error of this side")))
	c.wantIdle("nothing is sent")
	c.s.End()
	c.wantDone("the stream has ended", "1 flushed")
}

// TestVERBS_51_HalfAMessageIsNeverDelivered: its first half is placed when this side ends the
// stream; then the other comes.
func TestVERBS_51_HalfAMessageIsNeverDelivered(t *testing.T) {
	c := converse(t, nil)
	mem := c.receive(8)
	c.sends("half of a Send", append(ddp.UntaggedHeader{RsvdULP: OpSend.control(), QN: QNSend, MSN: 1}.Append(nil), "half"...))
	require.Equal(t, "half", string(mem[:4]))
	require.True(t, c.s.Terminate(errors.New("an error of this side")))
	c.sends("the rest", append(ddp.UntaggedHeader{Last: true, RsvdULP: OpSend.control(), QN: QNSend, MSN: 1, MO: 4}.Append(nil), "rest"...))
	require.Empty(t, c.received)
	require.Equal(t, "half\x00\x00\x00\x00", string(mem), "is not placed either")
	c.wantTerminate("the stream ends", bare(transport.RDMAPStreamCatastrophic))
}

// TestVERBS_68_ReadShowsEarlierWrites: also those whose segments it has overtaken.
func TestVERBS_68_ReadShowsEarlierWrites(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	r, mem := c.region(8, nil)
	copy(mem, "old data")
	at := RemoteAddr{r.STag(), 0x1000}
	require.NoError(t, c.take(1, readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: at})))
	c.wantIdle("the Read waits for the Write that was sent before it")
	require.NoError(t, c.take(0, tagged(OpWrite, true, at, "new data")))
	c.wantSegment("and returns it", tagged(OpReadResponse, true, target, "new data"))

	sink, _ := c.region(8, nil)
	c.post(writeOf(1, target, "written"), readOf(2, target, stag.Span{Region: sink, Len: 7}))
	c.wantSegment("on this side the Write goes first", tagged(OpWrite, true, target, "written"))
	c.wantSegment("and then the Read, which does not wait",
		readRequestOf(1, ReadRequest{Sink: RemoteAddr{sink.STag(), 0x1000}, Size: 7, Src: target}))
}

package rdmap

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// The requester.

func TestRDMAP_22_23_26_28_ARCH_21_ReadIsOneRequest(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(64, nil)
	c.post(readOf(1, RemoteAddr{0xaabbcc01, 0x4000}, span(sink, 3, 8)), readOf(2, RemoteAddr{0xaabbcc02, 0x5000}, span(sink, 16, 5)))
	c.wantSegment("28 octets on QN 1: sink STag and TO, size, source STag and TO", readRequestOf(1, ReadRequest{
		Sink: RemoteAddr{sink.STag(), 0x1003}, Size: 8, Src: RemoteAddr{0xaabbcc01, 0x4000},
	}))
	c.wantSegment("the second follows in post order", readRequestOf(2, ReadRequest{
		Sink: RemoteAddr{sink.STag(), 0x1010}, Size: 5, Src: RemoteAddr{0xaabbcc02, 0x5000},
	}))
	c.wantIdle("and that is all")
	_, err := c.tryPost(readOf(3, target, span(sink, 0, 1), span(sink, 1, 1)))
	require.ErrorIs(t, err, ErrRequest, "a Read has one sink")
}

func TestRDMAP_30_ZeroLengthRead(t *testing.T) {
	c := converse(t, nil)
	c.post(readOf(1, RemoteAddr{}))
	c.wantSegment("the request (V5)", unhex(`4141 00000000 00000001 00000001 00000000
		00000000 0000000000000000 00000000 00000000 0000000000000000`))
	c.sends("of an empty response STag and TO mean nothing", tagged(OpReadResponse, true, RemoteAddr{0xffffffff, 99}, ""))
	c.wantDone("it completes", "1 success")
}

func TestRDMAP_38_41_110_ReadCompletesWhenItsResponseIsDelivered(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(16, nil)
	c.post(readOf(1, target, span(sink, 4, 8)))
	require.NoError(t, c.flush())
	require.Empty(t, c.done, "a request that is out is not complete")
	c.sends("the response comes in pieces", tagged(OpReadResponse, false, RemoteAddr{sink.STag(), 0x1004}, "hell"))
	require.Empty(t, c.done, "nor is half a response")
	c.sends("the last one", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1008}, "o\x01\x02\x03"))
	c.wantDone("now it is", "1 success")
	require.Equal(t, "\x00\x00\x00\x00hello\x01\x02\x03\x00", string(mem[:13]), "octets went to the sink and nowhere else")
}

func TestRDMAP_40_42_ResponseMustMatchItsRequest(t *testing.T) {
	for what, x := range map[string]struct {
		segment func(sink RemoteAddr) []byte
		code    transport.Code
	}{
		"another STag":     {func(a RemoteAddr) []byte { a.STag ^= 1; return tagged(OpReadResponse, true, a, octets(8)) }, transport.DDPInvalidSTag},
		"an octet early":   {func(a RemoteAddr) []byte { a.TO--; return tagged(OpReadResponse, true, a, octets(8)) }, transport.DDPBounds},
		"an octet late":    {func(a RemoteAddr) []byte { a.TO++; return tagged(OpReadResponse, true, a, octets(8)) }, transport.DDPBounds},
		"an octet more":    {func(a RemoteAddr) []byte { return tagged(OpReadResponse, true, a, octets(9)) }, transport.DDPBounds},
		"an octet less":    {func(a RemoteAddr) []byte { return tagged(OpReadResponse, true, a, octets(7)) }, transport.DDPBounds},
		"nothing at all":   {func(a RemoteAddr) []byte { return tagged(OpReadResponse, true, a, "") }, transport.DDPBounds},
		"more, unfinished": {func(a RemoteAddr) []byte { return tagged(OpReadResponse, false, a, octets(9)) }, transport.DDPBounds},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			sink, mem := c.region(32, nil)
			c.post(readOf(1, target, span(sink, 8, 8)), readOf(2, target, span(sink, 16, 8)))
			require.NoError(t, c.flush())
			c.llp.sent = nil
			segment := x.segment(RemoteAddr{sink.STag(), 0x1008})
			c.wantRefused("it ends the stream", segment, blaming(x.code, segment))
			require.Equal(t, make([]byte, 32), mem, "nothing was placed")
			c.s.End()
			require.Len(t, c.done, 2)
			require.Contains(t, c.done[0], "1 bad response", "the Read tells")
			require.Equal(t, "2 flushed", c.done[1])
		})
	}
}

// TestRDMAP_40_42_ResponseToALaterKeyOfTheSink: the table would place it, but the Read was for the registration before.
func TestRDMAP_40_42_ResponseToALaterKeyOfTheSink(t *testing.T) {
	c := converse(t, nil)
	b, mem := c.fastRegion(), make([]byte, 8)
	first := c.registerOf(1, b, make([]byte, 8))
	c.post(first, readOf(2, target, span(first.Enable, 0, 8)))
	require.NoError(t, c.flush())
	require.Equal(t, stag.None, c.table.InvalidateSTag(alice, first.Enable.STag(), false))
	second := c.registerOf(3, b, mem)
	c.post(second)
	require.NoError(t, c.flush())
	c.llp.sent = nil
	segment := tagged(OpReadResponse, true, RemoteAddr{second.Enable.STag(), 0x1000}, octets(8))
	c.wantRefused("it ends the stream", segment, blaming(transport.DDPInvalidSTag, segment))
	require.Equal(t, make([]byte, 8), mem, "nothing was placed")
}

func TestRDMAP_41_ResponseStaysInOneBuffer(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, nil)
	other, otherMem := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)), readOf(2, target, span(other, 0, 8)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.sends("half a Response", tagged(OpReadResponse, false, RemoteAddr{sink.STag(), 0x1000}, "half"))
	segment := tagged(OpReadResponse, true, RemoteAddr{other.STag(), 0x1004}, "rest")
	c.wantRefused("the rest, to another buffer", segment, blaming(transport.DDPInvalidSTag, segment))
	require.Equal(t, "half\x00\x00\x00\x00", string(mem))
	require.Equal(t, make([]byte, 8), otherMem, "is not placed")
	c.s.End()
	c.wantDone("the Read tells", "1 bad response 1100", "2 flushed")
}

func TestRDMAP_40_EmptySegmentAtTheEndOfAResponse(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	c.sends("all octets, then an empty last segment",
		tagged(OpReadResponse, false, RemoteAddr{sink.STag(), 0x1000}, octets(8)),
		tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1008}, ""))
	c.wantDone("is a whole response", "1 success")
}

func TestRDMAP_40_ResponseWithoutRead(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	segment := tagged(OpReadResponse, true, RemoteAddr{r.STag(), 0x1000}, octets(8))
	c.wantRefused("it is unexpected", segment, blaming(transport.RDMAPOpcode, segment))
}

// The sink of a Read needs no remote right, and gives the peer none.
func TestRDMAP_40_SinkIsNoTargetForWrites(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, func(o *stag.Options) { o.Access = stag.LocalWrite })
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	c.wantFault("a Write to it is refused", transport.DDPNotAssociated,
		tagged(OpWrite, true, RemoteAddr{sink.STag(), 0x1000}, octets(8)))
	require.Equal(t, make([]byte, 8), mem)
}

func TestRDMAP_42_SinkIsInvalidatedBeforeTheResponse(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	require.NoError(t, c.table.Invalidate(t.Context(), sink))
	segment := tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, octets(8))
	c.wantRefused("the response cannot be placed", segment, blaming(transport.DDPInvalidSTag, segment))
	require.Equal(t, make([]byte, 8), mem)
	c.s.End()
	c.wantDone("the Read tells", "1 local protection error 1100")
}

// TestOnlyAResponseIsBlamedOnARead: another segment that cannot be placed says nothing about the Read that is outstanding.
func TestOnlyAResponseIsBlamedOnARead(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	require.True(t, c.s.Terminate(c.fault("a Write", transport.DDPInvalidSTag, tagged(OpWrite, true, target, "x"))))
	c.s.End()
	c.wantDone("nothing is known about the response", "1 flushed")
}

// TestResponseThatTheBufferOfItsSinkRefuses: the failure is this side's.
func TestResponseThatTheBufferOfItsSinkRefuses(t *testing.T) {
	c := converse(t, nil)
	sink, err := c.table.RegisterBuffer(fullDisk{}, stag.Options{Access: stag.LocalWrite, BaseTO: 0x1000, Scope: alice})
	require.NoError(t, err)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	require.True(t, c.s.Terminate(c.fault("the response", transport.DDPLocalCatastrophic,
		tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, octets(8)))))
	c.s.End()
	c.wantDone("the Read tells", "1 local operation error 1000")
}

type fullDisk struct{}

func (fullDisk) Size() int64                        { return 8 }
func (fullDisk) ReadAt([]byte, int64) (int, error)  { return 0, errFull }
func (fullDisk) WriteAt([]byte, int64) (int, error) { return 0, errFull }

var errFull = errors.New("disk full")

func TestVERBS_20_ReadWithInvalidateKillsTheSinkBeforeItCompletes(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, nil)
	c.watched = sink
	c.post(readOf(1, target, span(sink, 0, 8)).with(Invalidating))
	require.NoError(t, c.flush())
	require.True(t, sink.Valid(), "it is valid until the response")
	c.sends("the response", tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "hi there"))
	c.wantDone("completes the Read", "1 success")
	require.Equal(t, []bool{false}, c.watchedIs, "when the sink is dead already")
	require.Equal(t, "hi there", string(mem))
}

func TestReadWithInvalidateOfASinkThatIsNone(t *testing.T) {
	c := converse(t, nil)
	c.post(readOf(1, target).with(Invalidating))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	err := c.fault("an empty Read has no STag to invalidate", transport.RDMAPLocalCatastrophic,
		tagged(OpReadResponse, true, RemoteAddr{}, ""))
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("which is this side's fault", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("the Read tells", "1 bind or invalidate error")
}

func TestReadIntoASinkThatIsInvalid(t *testing.T) {
	c := converse(t, nil)
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.table.Invalidate(t.Context(), sink))
	err := c.flush()
	require.ErrorIs(t, err, stag.ErrInvalid)
	_, again := c.s.Fill(c.llp)
	require.Equal(t, err, again, "the stream stays where it is until it is terminated")
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("no request is sent", bare(transport.RDMAPLocalCatastrophic))
	c.s.End()
	c.wantDone("the Read tells", "1 local protection error")
}

func TestSourceOfAReadIsCopiedUnderADigest(t *testing.T) {
	c := converse(t, nil)
	c.llp.digest = true
	r, mem := c.region(4000, nil)
	copy(mem, octets(4000))
	c.sends("a request is taken", readRequestOf(1, ReadRequest{Sink: target, Size: 2000, Src: RemoteAddr{r.STag(), 0x1003}}))
	require.NoError(t, c.flush())
	require.Equal(t, []bool{true, true}, c.llp.staged, "the source may change at any time, and the digest must not")
}

func TestSourceOfAReadIsPinnedForOneFlush(t *testing.T) {
	for _, how := range []error{nil, transport.ErrAgain, transport.ErrFenced, net.ErrClosed} {
		c := converse(t, nil)
		r, _ := c.region(4000, nil)
		c.sends("a request is taken", readRequestOf(1, ReadRequest{Sink: target, Size: 2000, Src: RemoteAddr{r.STag(), 0x1003}}))
		_, err := c.s.Fill(c.llp)
		require.NoError(t, err)

		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, c.table.Invalidate(soon, r), context.DeadlineExceeded, "the batch refers to it")
		cancel()
		c.llp.flush = how
		require.Equal(t, how, c.s.Flush(c.llp))
		require.Equal(t, errors.Is(how, transport.ErrAgain) || errors.Is(how, transport.ErrFenced), c.llp.kept, "what has not left is copied")
		require.NoError(t, c.table.Invalidate(t.Context(), r), "nothing refers to it any more, after %v", how)
	}
}

func TestRDMAP_119_SinkOfAReadThatIsFlushedIsIndeterminate(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)))
	require.NoError(t, c.flush())
	c.sends("half a Response, then a Terminate",
		tagged(OpReadResponse, false, RemoteAddr{sink.STag(), 0x1000}, "half"), terminateOf(bare(transport.RDMAPStreamCatastrophic)))
	c.s.End()
	c.wantDone("the Read is flushed", "1 flushed")
	require.Equal(t, "half\x00\x00\x00\x00", string(mem), "and its sink is neither what it was nor what was asked for")
}

// The responder.

func TestRDMAP_24_25_29_34_35_36_RequestIsAnswered(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(4000, nil)
	copy(mem, octets(4000))
	c.receive(8)
	c.sends("a request is taken", readRequestOf(1, ReadRequest{
		Sink: RemoteAddr{0xcafebabe, 1<<40 + 1}, Size: 2000, Src: RemoteAddr{r.STag(), 0x1003},
	}))
	require.Empty(t, c.received, "no message is delivered")
	_, irq := c.s.Unfinished()
	require.Equal(t, 1, irq, "it takes a buffer of QN 1")
	c.wantSegment("the response goes to the sink as it was named",
		tagged(OpReadResponse, false, RemoteAddr{0xcafebabe, 1<<40 + 1}, octets(4000)[3:3+1486]))
	c.wantSegment("and goes on after it",
		tagged(OpReadResponse, true, RemoteAddr{0xcafebabe, 1<<40 + 1 + 1486}, octets(4000)[3+1486:2003]))
	c.wantIdle("one response, no more")
	require.Equal(t, []bool{false, false}, c.llp.staged, "without a digest nothing needs to be copied")
	_, irq = c.s.Unfinished()
	require.Zero(t, irq, "the buffer is free")
	require.Empty(t, c.done, "nothing of ours completes")
}

func TestRDMAP_24_EachRequestTakesABuffer(t *testing.T) {
	for _, window := range []int{0, 8} {
		c := converse(t, func(cfg *Config) { cfg.IRD, cfg.Window = 3, window })
		r, mem := c.region(8, nil)
		copy(mem, "01234567")
		request := func(msn ddp.MSN, size uint32) []byte {
			return readRequestOf(msn, ReadRequest{Sink: RemoteAddr{7, uint64(msn)}, Size: size, Src: RemoteAddr{r.STag(), 0x1000 + uint64(msn)}})
		}
		for k, want := range []int{1, 2, 3} {
			c.sends("a request", request(ddp.MSN(k+1), uint32(k)))
			_, irq := c.s.Unfinished()
			require.Equal(t, want, irq, "takes one buffer, also if it is for nothing")
		}
		c.wantSegment("which holds it until it is answered", tagged(OpReadResponse, true, RemoteAddr{7, 1}, ""))
		c.wantSegment("and no other", tagged(OpReadResponse, true, RemoteAddr{7, 2}, "2"))
		c.wantSegment("whatever came after it", tagged(OpReadResponse, true, RemoteAddr{7, 3}, "34"))
		c.sends("then it is free", request(4, 1), request(5, 1), request(6, 1))
		c.wantFault("three are three", transport.DDPMSNRange, request(7, 1))
	}
}

func TestRDMAP_31_32_EmptyRequestIsNotChecked(t *testing.T) {
	c := converse(t, nil)
	c.sends("garbage for a source", readRequestOf(1, ReadRequest{Sink: target, Src: RemoteAddr{0xffffffff, ^uint64(0)}}))
	c.wantSegment("gets an empty response", tagged(OpReadResponse, true, target, ""))
	c.wantIdle("of one segment")
}

func TestRDMAP_33_69_84_91_92_93_94_95_96_InvalidRequestIsRefused(t *testing.T) {
	for what, x := range map[string]struct {
		change func(*stag.Options)
		to     uint64
		size   uint32
		code   transport.Code
	}{
		"unknown STag":         {nil, 0x1000, 8, transport.RDMAPInvalidSTag},
		"of another PD":        {func(o *stag.Options) { o.Scope = carol }, 0x1000, 8, transport.RDMAPNotAssociated},
		"of another stream":    {func(o *stag.Options) { o.Scope = bob }, 0x1000, 8, transport.RDMAPNotAssociated},
		"before the region":    {nil, 0xfff, 1, transport.RDMAPBounds},
		"beyond the region":    {nil, 0x1008, 1, transport.RDMAPBounds},
		"an octet too long":    {nil, 0x1000, 9, transport.RDMAPBounds},
		"most of all":          {nil, 0x1000, 0xffffffff, transport.RDMAPBounds},
		"wraps":                {nil, ^uint64(0) - 3, 8, transport.RDMAPWrap},
		"no right to read":     {func(o *stag.Options) { o.Access = stag.LocalWrite | stag.RemoteWrite }, 0x1000, 8, transport.RDMAPAccess},
		"no right whatsoever ": {func(o *stag.Options) { o.Access = stag.LocalWrite }, 0x1000, 1, transport.RDMAPAccess},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			r, _ := c.region(8, x.change)
			if x.code == transport.RDMAPInvalidSTag {
				require.NoError(t, c.table.Invalidate(t.Context(), r))
			}
			request := ReadRequest{Sink: target, Size: x.size, Src: RemoteAddr{r.STag(), x.to}}
			segment := readRequestOf(1, request)
			want := blaming(x.code, segment)
			want.RDMAHeader = request.Append(nil)
			err := c.fault("the Read is refused", x.code, segment)
			require.ErrorContains(t, err, "Read of", "and the error says what was asked for")
			require.True(t, c.s.Terminate(err))
			c.wantTerminate("the Terminate has the DDP header and the request as it came", want)
		})
	}
}

func TestRDMAP_94_RequestMayEndWithTheRegion(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, octets(8))
	c.sends("the last octet can be read", readRequestOf(1, ReadRequest{Sink: target, Size: 1, Src: RemoteAddr{r.STag(), 0x1007}}))
	c.wantSegment("and is", tagged(OpReadResponse, true, target, octets(8)[7:]))
}

func TestRDMAP_23_RequestOfAnotherLength(t *testing.T) {
	short := untagged(OpReadRequest, QNRequest, 1, octets(27))
	c := converse(t, nil)
	c.wantRefused("an octet less", short, blaming(transport.RDMAPStreamCatastrophic, short))
	long := untagged(OpReadRequest, QNRequest, 1, octets(29))
	c = converse(t, nil)
	c.wantRefused("an octet more", long, blaming(transport.DDPTooLong, long))
	part := readRequestOf(1, ReadRequest{})
	part[0] &^= 0x40
	c = converse(t, nil)
	c.wantRefused("without L", part, blaming(transport.RDMAPStreamCatastrophic, part))
}

func TestRDMAP_27_39_111_ResponsesLeaveInTheOrderOfRequests(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, octets(8))
	for i := range uint64(3) {
		c.sends("a request", readRequestOf(ddp.MSN(i+1), ReadRequest{
			Sink: RemoteAddr{7, i}, Size: 1, Src: RemoteAddr{r.STag(), 0x1000 + i},
		}))
	}
	for i := range uint64(3) {
		c.wantSegment("responses in order", tagged(OpReadResponse, true, RemoteAddr{7, i}, octets(8)[i:i+1]))
	}
}

func TestRDMAP_70_ErrorInTheMiddleOfAResponse(t *testing.T) {
	c := converse(t, nil)
	c.llp.capacity = 1
	r, mem := c.region(4000, nil)
	copy(mem, octets(4000))
	request := ReadRequest{Sink: RemoteAddr{7, 0x50}, Size: 3000, Src: RemoteAddr{r.STag(), 0x1000}}
	segment := readRequestOf(1, request)
	c.sends("a request", segment)
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more, "the response takes more than one batch")
	require.NoError(t, c.s.Flush(c.llp))
	require.NoError(t, c.table.Invalidate(t.Context(), r))
	c.s.Flushed()
	err = c.flush()
	require.Error(t, err, "the rest may not be read any more")
	require.True(t, c.s.Terminate(err))
	c.wantSegment("what was sent, was sent", tagged(OpReadResponse, false, request.Sink, octets(4000)[:1486]))
	want := blaming(transport.RDMAPInvalidSTag, segment)
	want.RDMAHeader = ReadRequest{
		Sink: RemoteAddr{7, 0x50 + 1486}, Size: 3000 - 1486, Src: RemoteAddr{r.STag(), 0x1000 + 1486},
	}.Append(nil)
	c.wantTerminate("the Terminate names the part that was left out", want)
}

func TestResponseWhoseSourceCannotBeRead(t *testing.T) {
	c := converse(t, nil)
	r, err := c.table.RegisterBuffer(&brokenBuffer{size: 8}, stag.Options{Access: stag.RemoteRead, Scope: alice})
	require.NoError(t, err)
	segment := readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0}})
	c.sends("a request that looks right", segment)
	err = c.flush()
	require.ErrorIs(t, err, errBroken)
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("ends the stream", blaming(transport.RDMAPStreamCatastrophic, segment))
	require.NoError(t, c.table.Close(t.Context(), r), "and leaves no pin behind")
}

func TestRDMAP_102_108_RequestSeesWhatWasSentBefore(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(8, nil)
	c.sends("a Write, then a Read of the same octets",
		tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, "new data"),
		readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0x1000}}))
	c.wantSegment("reads what was written", tagged(OpReadResponse, true, target, "new data"))

	c = converse(t, func(cfg *Config) { cfg.Window = 8 })
	r, _ = c.region(8, nil)
	require.NoError(t, c.take(1, readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0x1000}})))
	c.wantIdle("a request that comes early is not processed")
	require.NoError(t, c.take(0, tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, "new data")))
	c.wantSegment("until everything before it was delivered", tagged(OpReadResponse, true, target, "new data"))

	c = converse(t, func(cfg *Config) { cfg.Window = 8 })
	c.receive(8)
	require.NoError(t, c.take(1, readRequestOf(1, ReadRequest{Sink: target})))
	_, irq := c.s.Unfinished()
	require.Zero(t, irq, "nor is one for nothing")
	c.wantIdle("by which a peer flushes")
	require.NoError(t, c.take(0, untagged(OpSend, QNSend, 1, "send")))
	require.Len(t, c.received, 1, "a Send before it is delivered")
	c.wantSegment("when it is answered", tagged(OpReadResponse, true, target, ""))
}

func TestRDMAP_103_ResponseMayShowLaterWrites(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "old data")
	c.sends("a Read, then a Write to the same octets",
		readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0x1000}}),
		tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, "new data"))
	c.wantSegment("the peer should have fenced", tagged(OpReadResponse, true, target, "new data"))
}

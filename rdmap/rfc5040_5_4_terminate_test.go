package rdmap

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestRDMAP_58_59_61_63_64_65_REG_12_14_TerminateOnTheWire(t *testing.T) {
	c := converse(t, nil)
	c.receive(9)
	err := c.fault("a Send of 10 octets where 9 fit", transport.DDPTooLong, untagged(OpSend, QNSend, 1, octets(10)))
	require.True(t, c.s.Terminate(err))
	c.wantSegment("is answered by this (D7)", unhex(`4147 00000000 00000002 00000001 00000000 |
		12 05 c0 00 | 001c | 4143 00000000 00000000 00000001 00000000`))

	c = converse(t, nil)
	err = c.fault("a Write of 8 octets to an unknown STag", transport.DDPInvalidSTag, tagged(OpWrite, true, target, octets(8)))
	require.True(t, c.s.Terminate(err))
	c.wantSegment("is answered by this (D8)", unhex(`4147 00000000 00000002 00000001 00000000 |
		11 00 c0 00 | 0016 | c140 11223344 0000000000001000`))

	c = converse(t, nil)
	c.post(sendOf(1, "a"), sendOf(2, "b"), readOf(3, target))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	require.True(t, c.s.Terminate(&transport.Fault{Code: transport.MPACRC}))
	c.wantSegment("QN 2 has numbers of its own; without headers there is no length either", unhex(`
		4147 00000000 00000002 00000001 00000000 | 20 02 00 00`))

	c = converse(t, nil)
	err = c.fault("a Read of an unknown STag", transport.RDMAPInvalidSTag, readRequestOf(1, ReadRequest{Size: 1, Src: target}))
	require.True(t, c.s.Terminate(err))
	c.wantSegment("is answered by this, with R", unhex(`4147 00000000 00000002 00000001 00000000 |
		01 00 e0 00 | 002e | 4141 00000000 00000001 00000001 00000000 |
		00000000 0000000000000000 00000001 11223344 0000000000001000`))
	got, parseErr := ParseTerminate(unhex("01 00 e0 00 | 002e | 4141 00000000 00000001 00000001 00000000 |" + strings.Repeat("5a", ReadRequestLen)))
	require.NoError(t, parseErr)
	require.EqualValues(t, 0, got.Code.Layer(), "the upper four bits of the first octet")
	require.EqualValues(t, 1, got.Code.Type(), "the lower four")
	require.Equal(t, 0x2e, got.SegmentLen)
	require.Len(t, got.RDMAHeader, ReadRequestLen)
	require.EqualValues(t, 0x1205, transport.MakeCode(1, 2, 5))
	require.EqualValues(t, []uint8{1, 2, 5}, []uint8{transport.DDPTooLong.Layer(), transport.DDPTooLong.Type(), transport.DDPTooLong.Code()})
}

func TestRDMAP_66_68_REG_13_RDMAHeaderOfReadRequests(t *testing.T) {
	c := converse(t, nil)
	request := ReadRequest{Sink: RemoteAddr{1, 2}, Size: 3, Src: RemoteAddr{4, 5}}
	err := c.fault("a Read of an unknown STag", transport.RDMAPInvalidSTag, readRequestOf(1, request))
	require.True(t, c.s.Terminate(err))
	c.wantSegment("is answered with its 28 octets, 70 in all", unhex(`4147 00000000 00000002 00000001 00000000 |
		01 00 e0 00 | 002e | 4141 00000000 00000001 00000001 00000000 |
		00000001 0000000000000002 00000003 00000004 0000000000000005`))
	require.NoError(t, c.table.Close(t.Context(), func() *stag.Region { r, _ := c.region(1, nil); return r }()))

	c = converse(t, func(cfg *Config) { cfg.IRD = 0 })
	segment := readRequestOf(1, request)
	require.True(t, c.s.Terminate(c.fault("a Read beyond the IRD", transport.DDPMSNRange, segment)))
	c.wantSegment("errors of DDP do not have it, nor do they announce it", unhex(`4147 00000000 00000002 00000001 00000000 |
		12 03 c0 00 | 002e | 4141 00000000 00000001 00000001 00000000`))
}

func TestRDMAP_60_67_77_REG_13_WhatATerminateTellsOfACause(t *testing.T) {
	segment := untagged(OpSend, QNSend, 1, "hello")
	report := func(code transport.Code) error {
		return &ddp.SegmentError{Fault: &transport.Fault{Code: code}, Header: segment[:18], Len: len(segment)}
	}
	for what, x := range map[string]struct {
		cause error
		want  Terminate
	}{
		"a local catastrophe has no headers": {report(transport.RDMAPLocalCatastrophic), bare(transport.RDMAPLocalCatastrophic)},
		"one of DDP has":                     {report(transport.DDPLocalCatastrophic), blaming(transport.DDPLocalCatastrophic, segment)},
		"an operation error has":             {report(transport.RDMAPOpcode), blaming(transport.RDMAPOpcode, segment)},
		"an error of the LLP has not":        {&transport.Fault{Code: transport.MPACRC}, bare(transport.MPACRC)},
		"nor if it is about a segment":       {report(transport.MPACRC), bare(transport.MPACRC)},
		"nor one of an unknown kind":         {errors.New("?"), bare(transport.RDMAPStreamCatastrophic)},
		"nor one of a segment without": {
			&ddp.SegmentError{Fault: &transport.Fault{Code: transport.DDPLocalCatastrophic}, Len: 3}, bare(transport.DDPLocalCatastrophic),
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			require.True(t, c.s.Terminate(x.cause))
			c.wantTerminate(what, x.want)
		})
	}
}

func TestRDMAP_71_72_TerminateIsAlwaysTaken(t *testing.T) {
	want := blaming(transport.DDPTooLong, untagged(OpSend, QNSend, 9, octets(10)))
	c := converse(t, func(cfg *Config) { cfg.IRD, cfg.ORD = 0, 0 })
	c.sends("nothing is posted, and no other queue has a buffer", terminateOf(want))
	require.Equal(t, []Terminate{want}, c.terminated, "there is one for a Terminate")

	c = converse(t, func(cfg *Config) { cfg.IRD = 1 })
	c.missing = transport.ErrStall
	c.sends("the buffer of QN 1 is taken", readRequestOf(1, ReadRequest{}))
	require.ErrorIs(t, c.take(1, untagged(OpSend, QNSend, 1, "")), transport.ErrStall, "and QN 0 has none")
	require.NoError(t, c.take(1, terminateOf(want)))
	require.Equal(t, []Terminate{want}, c.terminated)

	c = converse(t, nil)
	h := ddp.UntaggedHeader{RsvdULP: 0x43, MSN: 1}
	c.receive(100)
	c.sends("a Send of the peer is not complete", append(h.Append(nil), "half"...))
	c.sends("when its Terminate comes", terminateOf(want))
	require.Equal(t, []Terminate{want}, c.terminated, "which is delivered at once")
	c.sends("only one is", terminateOf(want))
	require.Len(t, c.terminated, 1)
	require.Empty(t, c.received)
}

func TestRDMAP_73_85_VERBS_50_TerminateGoesAheadAndIsTheLast(t *testing.T) {
	c := converse(t, nil)
	c.llp.capacity = 1
	source, _ := c.region(4000, nil)
	c.post(Request{ID: 1, Kind: KindWrite, Remote: target, Spans: []stag.Span{span(source, 0, 4000)}}, sendOf(2, ""))
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.Len(t, c.llp.sent, 1, "a Write of three segments is in the works")
	err = c.fault("the peer errs", transport.RDMAPOpcode, untagged(OpWrite, QNSend, 1, ""))
	require.True(t, c.s.Terminate(err))
	require.False(t, c.s.Terminate(errors.New("another")), "the first cause counts")
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more, "the Terminate waits for a batch")
	_, sent := c.s.TerminateSent()
	require.False(t, sent)
	require.NoError(t, c.s.Flush(c.llp))
	c.s.Flushed()
	c.llp.sent = c.llp.sent[1:]
	c.wantTerminate("then it goes out at the end of a segment; the rest never",
		blaming(transport.RDMAPOpcode, untagged(OpWrite, QNSend, 1, "")))
	require.Empty(t, c.done)
	c.s.End()
	c.wantDone("what was cut is flushed too", "1 flushed", "2 flushed")
	require.NoError(t, c.table.Close(t.Context(), source), "its source is free")
}

func TestRDMAP_74_75_78_ReceivedTerminateEndsTheWork(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.ORD = 1 })
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 8)), sendOf(2, ""), readOf(3, target, span(sink, 0, 8)), writeOf(4, target, ""))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.sends("a Read Request is not answered any more", readRequestOf(1, ReadRequest{}))
	c.sends("the peer ends the stream", terminateOf(bare(transport.RDMAPStreamCatastrophic)))
	require.False(t, c.s.Pending())
	c.wantIdle("nothing more is sent, not even a Terminate")
	require.False(t, c.s.Terminate(errors.New("late")), "nor can one be")
	_, err := c.tryPost(sendOf(9, ""))
	require.ErrorIs(t, err, ErrEnded)
	c.s.End()
	c.s.End()
	c.wantDone("everything that is not complete is flushed, once, in order", "1 flushed", "2 flushed", "3 flushed", "4 flushed")
	sq, irq := c.s.Unfinished()
	require.Equal(t, [2]int{}, [2]int{sq, irq})
}

func TestRDMAP_76_InvalidTerminateIsNotAnswered(t *testing.T) {
	whole := terminateOf(bare(transport.MPACRC))
	part := patch(whole, 0, 0x01)
	for what, segment := range map[string][]byte{
		"too short":       whole[:21],
		"too long":        untagged(OpTerminate, QNTerminate, 1, octets(53)),
		"not the last":    part,
		"of MSN 2":        untagged(OpTerminate, QNTerminate, 2, "\x20\x02\x00\x00"),
		"on another QN":   untagged(OpTerminate, QNSend, 1, "\x20\x02\x00\x00"),
		"at an offset":    patch(whole, 17, 53),
		"tagged":          tagged(OpTerminate, true, target, "\x20\x02\x00\x00"),
		"another version": patch(whole, 1, 0x87),
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			c.post(sendOf(1, ""))
			err := c.send(segment)
			require.Error(t, err, "it is surfaced")
			require.False(t, c.s.Terminate(err), "but not answered")
			c.wantIdle("and nothing more is sent")
			c.s.End()
			c.wantDone("the stream has ended", "1 flushed")
		})
	}
}

func TestRDMAP_62_REG_14_ReservedBitsOfTerminateAreIgnored(t *testing.T) {
	b := bare(transport.MPACRC).Append(nil)
	b[2], b[3] = 0x1f, 0xff
	got, err := ParseTerminate(b)
	require.NoError(t, err)
	require.Equal(t, bare(transport.MPACRC), got)

	full := blaming(transport.RDMAPBounds, readRequestOf(1, ReadRequest{}))
	full.RDMAHeader = ReadRequest{}.Append(nil)
	b = full.Append(nil)
	b[2], b[3] = b[2]|0x1f, 0xff
	got, err = ParseTerminate(b)
	require.NoError(t, err)
	require.Equal(t, full, got)
}

func TestRDMAP_81_86_FirstErrorIsReported(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	r, _ := c.region(8, nil)
	second := tagged(OpWrite, true, RemoteAddr{r.STag(), 0x2000}, "x")
	first := untagged(OpWrite, QNSend, 1, "")
	require.NoError(t, c.take(1, second), "an error that comes early counts for nothing yet")
	err := c.take(0, first)
	require.Error(t, err, "the owner is told")
	require.True(t, c.s.Terminate(err))
	require.False(t, c.s.Terminate(&transport.Fault{Code: transport.MPACRC}), "what is found later is not told")
	c.wantTerminate("of the one that was sent first", blaming(transport.RDMAPOpcode, first))
}

// Which request a Terminate of the peer is about.
func TestReceivedTerminateIsAttributed(t *testing.T) {
	read := func(msn ddp.MSN) []byte { return readRequestOf(msn, ReadRequest{}) }
	for what, x := range map[string]struct {
		terminate Terminate
		want      []string
	}{
		"the second Read, refused": {
			blaming(transport.RDMAPAccess, read(2)),
			[]string{"1 flushed", "2 flushed", "3 remote access error 0102", "4 flushed"},
		},
		"the first Read, beyond the IRD": {
			blaming(transport.DDPMSNRange, read(1)),
			[]string{"1 remote invalid request 1203", "2 flushed", "3 flushed", "4 flushed"},
		},
		"the first Send, which found no receive": {
			blaming(transport.DDPNoBuffer, untagged(OpSend, QNSend, 1, "")),
			[]string{"1 flushed", "2 no receive posted by the peer 1202", "3 flushed", "4 flushed"},
		},
		"an unknown opcode": {
			blaming(transport.RDMAPOpcode, read(2)),
			[]string{"1 flushed", "2 flushed", "3 remote invalid request 0206", "4 flushed"},
		},
		"a peer that fails": {
			blaming(transport.RDMAPStreamCatastrophic, read(2)),
			[]string{"1 flushed", "2 flushed", "3 remote operation error 0207", "4 flushed"},
		},
		"an STag that cannot be invalidated": {
			blaming(transport.RDMAPOpNoInvalidate, untagged(OpSendInvalidate, QNSend, 1, "")),
			[]string{"1 flushed", "2 remote access error 0209", "3 flushed", "4 flushed"},
		},
		"a Write, which nothing tells apart": {
			blaming(transport.DDPBounds, tagged(OpWrite, true, target, "x")),
			[]string{"1 flushed", "2 flushed", "3 flushed", "4 flushed"},
		},
		"a request that was never sent": {
			blaming(transport.DDPBounds, read(77)),
			[]string{"1 flushed", "2 flushed", "3 flushed", "4 flushed"},
		},
		"nothing in particular": {
			bare(transport.RDMAPLocalCatastrophic),
			[]string{"1 flushed", "2 flushed", "3 flushed", "4 flushed"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			c.post(readOf(1, target), sendOf(2, ""), readOf(3, target), writeOf(4, target, "x"))
			require.NoError(t, c.flush())
			c.sends("the Terminate", terminateOf(x.terminate))
			c.s.End()
			c.wantDone("one request at most has another status", x.want...)
		})
	}
}

// A Send that is in the batch, or half sent, when the peer ends the stream for it.
func TestTerminateOvertakesTheFlush(t *testing.T) {
	c := converse(t, nil)
	c.llp.capacity = 2
	source, _ := c.region(4000, nil)
	c.post(writeOf(1, target, ""), Request{ID: 2, Kind: KindSend, Spans: []stag.Span{span(source, 0, 4000)}})
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	c.sends("the Terminate", terminateOf(blaming(transport.DDPNoBuffer, untagged(OpSend, QNSend, 1, ""))))
	c.s.Flushed()
	c.wantDone("what was out and not in error completes", "1 success")
	c.s.End()
	c.wantDone("the Send tells", "2 no receive posted by the peer 1202")

	c = converse(t, nil)
	c.post(sendOf(1, ""), sendOf(2, ""))
	_, err = c.s.Fill(c.llp)
	require.NoError(t, err)
	c.sends("the Terminate", terminateOf(blaming(transport.DDPNoBuffer, untagged(OpSend, QNSend, 1, ""))))
	c.s.Flushed()
	require.Empty(t, c.done, "a flush does not make a success of it")
	c.s.End()
	c.wantDone("the Send tells", "1 no receive posted by the peer 1202", "2 flushed")
}

func TestTerminateThatWasNotSent(t *testing.T) {
	c := converse(t, nil)
	require.True(t, c.s.Terminate(&transport.Fault{Code: transport.MPACRC}))
	require.True(t, c.s.Pending())
	c.s.End()
	require.False(t, c.s.Pending())
	c.wantIdle("is never sent after the end")
	_, sent := c.s.TerminateSent()
	require.False(t, sent)
}

// The Terminate codec.

var fullTerminate = Terminate{
	Code: transport.RDMAPBounds, SegmentLen: 46,
	DDPHeader:  readRequestOf(3, ReadRequest{})[:18],
	RDMAHeader: ReadRequest{Sink: RemoteAddr{1, 2}, Size: 3, Src: RemoteAddr{4, 5}}.Append(nil),
}

func TestTerminateSizes(t *testing.T) {
	tag := blaming(transport.DDPBounds, tagged(OpWrite, true, target, "x"))
	untag := blaming(transport.DDPTooLong, untagged(OpSend, QNSend, 1, "x"))
	for n, m := range map[int]Terminate{4: bare(transport.MPACRC), 20: tag, 24: untag, 52: fullTerminate} {
		b := m.Append(nil)
		require.Len(t, b, n)
		got, err := ParseTerminate(b)
		require.NoError(t, err)
		require.Equal(t, m, got, "round trip")
	}
}

func TestTerminateTruncatedAtEveryLength(t *testing.T) {
	b := fullTerminate.Append(nil)
	for n := range len(b) {
		got, err := ParseTerminate(b[:n])
		if n < 4 {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, "%d octets", n)
		require.Equal(t, transport.RDMAPBounds, got.Code)
		require.Equal(t, n >= 6, got.SegmentLen == 46, "%d octets", n)
		require.Equal(t, n >= 24, got.DDPHeader != nil, "%d octets", n)
		require.Nil(t, got.RDMAHeader, "%d octets", n)
	}
}

func TestTerminateOfSiw(t *testing.T) {
	segment := untagged(OpSend, QNSend, 1, octets(10))
	want := blaming(transport.DDPTooLong, segment)
	b := want.Append(nil)
	b[0], b[2] = 0x21, 0x03
	got, err := ParseTerminate(b)
	require.NoError(t, err)
	require.Equal(t, want, got, "12 05 c0 00 comes as 21 05 03 00")

	b = fullTerminate.Append(nil)
	b[0], b[2] = 0x10, 0x07
	got, err = ParseTerminate(b)
	require.NoError(t, err)
	require.Equal(t, fullTerminate, got, "with an RDMA header 07")

	got, err = ParseTerminate(slices.Clone(b[:24]))
	require.NoError(t, err)
	require.Nil(t, got.RDMAHeader, "which it announces where there is none")
	require.Equal(t, fullTerminate.DDPHeader, got.DDPHeader)

	got, err = ParseTerminate([]byte{0x02, 0x02, 0, 0})
	require.NoError(t, err)
	require.Equal(t, bare(transport.MPACRC), got, "without headers the code tells: 0/2/02 does not exist")

	got, err = ParseTerminate([]byte{0x02, 0x06, 0, 0})
	require.NoError(t, err)
	require.Equal(t, bare(transport.RDMAPOpcode), got, "what exists is taken as it stands")

	got, err = ParseTerminate([]byte{0x00, 0xff, 0, 0})
	require.NoError(t, err)
	require.Equal(t, transport.Code(0x00ff), got.Code, "siw's local catastrophe has this code")
}

func TestTerminateOfNetworkCards(t *testing.T) {
	for b, want := range map[[2]byte]transport.Code{
		{0x23, 0x02}: transport.MPACRC,
		{0x23, 0x03}: transport.MPAMarker,
		{0x23, 0x06}: transport.MPAInsufficientIRD,
		{0x23, 0x07}: transport.MPANoRTR,
		{0x23, 0x77}: 0x2377, // nothing
		{0x02, 0x00}: transport.RDMAPInvalidSTag,
	} {
		got, err := ParseTerminate([]byte{b[0], b[1], 0, 0})
		require.NoError(t, err)
		require.Equal(t, bare(want), got, "%x", b)
	}

	refused := blaming(transport.RDMAPInvalidSTag, tagged(OpWrite, true, target, "x"))
	b := refused.Append(nil)
	b[0] = 0x02
	got, err := ParseTerminate(b)
	require.NoError(t, err)
	require.Equal(t, refused, got, "Intel's cards send the headers with it")
}

// The registries of RFC 6580 section 3, RFC 6581 section 11 included: layer and
// type, and the codes there.
var registered = map[transport.Code][]transport.Code{
	0x0100: {0x00, 0x01, 0x02, 0x03, 0x04, 0x09, 0xff},
	0x0200: {0x05, 0x06, 0x07, 0x08, 0x09, 0xff},
	0x1000: {0x00},
	0x1100: {0x00, 0x01, 0x02, 0x03, 0x04},
	0x1200: {0x01, 0x02, 0x03, 0x04, 0x05, 0x06},
	0x2000: {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07},
}

func TestREG_1_2_3_4_5_6_CodesAreTheRegisteredOnes(t *testing.T) {
	for c := range transport.Code(0x3000) {
		want := c&0xff00 == 0 || slices.Contains(registered[c&0xff00], c&0xff)
		require.Equal(t, want, assigned(c), "%04x; 0/0 has any code, and 1/3 belongs to the LLP", uint16(c))
		require.Equal(t, want, !strings.HasPrefix(c.String(), "unassigned"), "%04x has a name", uint16(c))
	}
	for name, v := range map[string]struct{ got, want transport.Code }{
		"local catastrophic": {transport.RDMAPLocalCatastrophic, 0x0000},

		"invalid STag":                                  {transport.RDMAPInvalidSTag, 0x0100},
		"base or bounds violation":                      {transport.RDMAPBounds, 0x0101},
		"access rights violation":                       {transport.RDMAPAccess, 0x0102},
		"STag not associated with the stream":           {transport.RDMAPNotAssociated, 0x0103},
		"TO wrap":                                       {transport.RDMAPWrap, 0x0104},
		"remote protection: STag cannot be invalidated": {transport.RDMAPProtNoInvalidate, 0x0109},
		"remote protection: unspecified":                {transport.RDMAPProtUnspecified, 0x01ff},

		"invalid RDMAP version":                        {transport.RDMAPVersion, 0x0205},
		"unexpected opcode":                            {transport.RDMAPOpcode, 0x0206},
		"catastrophic, this stream":                    {transport.RDMAPStreamCatastrophic, 0x0207},
		"catastrophic, global":                         {transport.RDMAPGlobalCatastrophic, 0x0208},
		"remote operation: STag cannot be invalidated": {transport.RDMAPOpNoInvalidate, 0x0209},
		"remote operation: unspecified":                {transport.RDMAPOpUnspecified, 0x02ff},

		"DDP local catastrophic": {transport.DDPLocalCatastrophic, 0x1000},

		"tagged buffer: invalid STag":                        {transport.DDPInvalidSTag, 0x1100},
		"tagged buffer: base or bounds violation":            {transport.DDPBounds, 0x1101},
		"tagged buffer: STag not associated with the stream": {transport.DDPNotAssociated, 0x1102},
		"tagged buffer: TO wrap":                             {transport.DDPWrap, 0x1103},
		"tagged buffer: invalid DDP version":                 {transport.DDPTaggedVersion, 0x1104},

		"invalid QN":                           {transport.DDPQueue, 0x1201},
		"invalid MSN, no buffer available":     {transport.DDPNoBuffer, 0x1202},
		"invalid MSN, out of range":            {transport.DDPMSNRange, 0x1203},
		"invalid MO":                           {transport.DDPOffset, 0x1204},
		"message too long for its buffer":      {transport.DDPTooLong, 0x1205},
		"untagged buffer: invalid DDP version": {transport.DDPUntaggedVersion, 0x1206},

		"TCP connection closed":      {transport.MPAConnectionLost, 0x2001},
		"CRC error":                  {transport.MPACRC, 0x2002},
		"Marker and ULPDU length":    {transport.MPAMarker, 0x2003},
		"invalid Request or Reply":   {transport.MPAStartup, 0x2004},
		"MPA: local catastrophic":    {transport.MPALocalCatastrophic, 0x2005},
		"insufficient IRD resources": {transport.MPAInsufficientIRD, 0x2006},
		"no matching RTR option":     {transport.MPANoRTR, 0x2007},
	} {
		require.Equal(t, v.want, v.got, name)
		require.Contains(t, v.got.String(), name, "the name of %04x", uint16(v.want))
	}
}

// FuzzParse reads messages. What was read means the same when it is written.
func FuzzParse(f *testing.F) {
	f.Add(someReadRequestBytes)
	f.Add(fullTerminate.Append(nil))
	f.Add([]byte{0x21, 0x05, 0x03, 0})
	f.Add(make([]byte, 52))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseReadRequest(b)
		require.Equal(t, len(b) != ReadRequestLen, err != nil)
		if err == nil {
			require.Equal(t, b, h.Append(nil))
		}
		m, err := ParseTerminate(b)
		require.Equal(t, len(b) < 4, err != nil)
		if err != nil {
			return
		}
		require.Contains(t, []int{0, ddp.TaggedLen, ddp.UntaggedLen}, len(m.DDPHeader))
		require.Contains(t, []int{0, ReadRequestLen}, len(m.RDMAHeader))
		if m.DDPHeader == nil || m.SegmentLen < 0 {
			return
		}
		again, err := ParseTerminate(m.Append(nil))
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

// TestRDMAP_83_ErrorOfAMessageThatIsNoRequest: of a Write, of every kind of Send, and of a
// Read Response the Terminate has the type and code of the error, the length of the
// segment and its DDP header, octet for octet, and no RDMA header.
func TestRDMAP_83_ErrorOfAMessageThatIsNoRequest(t *testing.T) {
	long := strings.Repeat("x", 40)
	sends := func(op Opcode) func(*conversation, RemoteAddr) []byte {
		return func(c *conversation, _ RemoteAddr) []byte { c.receive(39); return untagged(op, QNSend, 1, long) }
	}
	invalidates := func(op Opcode) func(*conversation, RemoteAddr) []byte {
		return func(c *conversation, at RemoteAddr) []byte { c.receive(39); return invalidating(op, 1, at.STag, long) }
	}
	for what, x := range map[string]struct {
		code    transport.Code
		segment func(*conversation, RemoteAddr) []byte
		want    string // M, D and R, the reserved bits, and the length
	}{
		"RDMA Write": {transport.DDPBounds, func(_ *conversation, at RemoteAddr) []byte {
			return tagged(OpWrite, true, RemoteAddr{at.STag, at.TO + 25}, long)
		}, "c000 0036"},
		"Send":                             {transport.DDPTooLong, sends(OpSend), "c000 003a"},
		"Send with Solicited Event":        {transport.DDPTooLong, sends(OpSendSolicited), "c000 003a"},
		"Send with Invalidate":             {transport.DDPTooLong, invalidates(OpSendInvalidate), "c000 003a"},
		"Send with both":                   {transport.DDPTooLong, invalidates(OpSendSolicitedInvalidate), "c000 003a"},
		"Send that nothing is posted for":  {transport.DDPNoBuffer, func(*conversation, RemoteAddr) []byte { return untagged(OpSend, QNSend, 1, long) }, "c000 003a"},
		"RDMA Read Response to no Request": {transport.RDMAPOpcode, func(_ *conversation, at RemoteAddr) []byte { return tagged(OpReadResponse, true, at, long) }, "c000 0036"},
		"RDMA Read Response to elsewhere": {transport.DDPInvalidSTag, func(c *conversation, at RemoteAddr) []byte {
			sink, _ := c.region(40, nil)
			c.post(readOf(1, target, span(sink, 0, 40)))
			require.NoError(c, c.flush())
			c.llp.sent = nil
			return tagged(OpReadResponse, true, at, long)
		}, "c000 0036"},
		"Send with an STag that is not there": {transport.RDMAPOpNoInvalidate, func(c *conversation, at RemoteAddr) []byte {
			c.receive(40)
			return invalidating(OpSendInvalidate, 1, at.STag^1, long)
		}, "c000 003a"},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			r, mem := c.region(64, nil)
			segment := x.segment(c, RemoteAddr{r.STag(), 0x1000})
			header := segment[:ddp.UntaggedLen]
			if ddp.IsTagged(segment) {
				header = segment[:ddp.TaggedLen]
			}
			e := c.fault("the message is refused", x.code, segment)
			require.True(t, c.s.Terminate(e))
			message := append([]byte{byte(x.code >> 8), byte(x.code)}, unhex(x.want)...)
			c.wantSegment("type, code, length and DDP header, and nothing more",
				untagged(OpTerminate, QNTerminate, 1, string(append(message, header...))))
			c.wantIdle("nothing follows")
			require.Equal(t, make([]byte, 64), mem, "nothing was placed")
		})
	}
}

// TestNothingHappensAfterTheEnd: what comes is dropped, what is queued is not sent, and
// ending again completes nothing.
func TestNothingHappensAfterTheEnd(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(16, nil)
	c.receive(16)
	c.post(sendOf(1, "a"), sendOf(2, "b"))
	c.sends("a Read Request", readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0x1000}}))
	c.s.End()
	c.wantDone("all is flushed", "1 flushed", "2 flushed")
	c.s.End()
	require.Empty(t, c.done)
	c.wantIdle("neither requests nor responses go out")
	sq, irq := c.s.Unfinished()
	require.Equal(t, []int{0, 0}, []int{sq, irq})
	c.sends("the peer goes on", untagged(OpSend, QNSend, 1, "late"), tagged(OpWrite, true, RemoteAddr{r.STag(), 0x1000}, "late"))
	require.Empty(t, c.received)
	require.Equal(t, make([]byte, 16), mem)
	require.False(t, c.s.Terminate(errBroken))
	require.NoError(t, c.table.Invalidate(done(t), r), "nothing is pinned")
}

package mpa

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// initiate lets an initiator meet a scripted Reply.
func initiate(t *testing.T, o Options, ird, ord int, reply string) (result, *script) {
	t.Helper()
	s := &script{reads: [][]byte{unhex(reply)}}
	c, terms, err := Connect(t.Context(), s, o, ird, ord, nil)
	return result{c, terms, err}, s
}

// respond lets a responder that accepts meet a scripted Request.
func respond(t *testing.T, o Options, ird, ord int, request string) (result, *script) {
	t.Helper()
	s := &script{reads: [][]byte{unhex(request)}}
	r, err := ReadRequest(t.Context(), s)
	if err != nil {
		return result{err: err}, s
	}
	c, terms, err := r.Accept(t.Context(), o, ird, ord, nil)
	return result{c, terms, err}, s
}

func TestMPA2_1_33_UnenhancedRequestIsAnsweredInKind(t *testing.T) {
	for request, reply := range map[string]string{
		keyReq + "40010000": keyRep + "40010000",
		keyReq + "40020000": keyRep + "40020000", // revision 2 without S
		keyReq + "50010000": keyRep + "40010000", // in revision 1 S is a reserved bit
	} {
		r, s := respond(t, Options{}, 3, 4, request)
		require.NoError(t, r.err)
		require.Equal(t, unhex(reply), s.wire(), "the answer to %s", request[32:])
		require.Equal(t, 3, r.terms.IRD, "nothing is negotiated")
		require.Equal(t, 4, r.terms.ORD, "nothing is negotiated")
		require.Equal(t, -1, r.terms.PeerIRD)
		require.Equal(t, -1, r.terms.PeerORD)
		require.Zero(t, r.terms.RTR)
	}
	r, _ := respond(t, Options{}, 3, 4, keyReq+"50010004 8010c008")
	require.Equal(t, unhex("8010c008"), r.terms.PeerPrivateData, "private data of revision 1 is the ULP's, all of it")
}

func TestMPA2_2_3_20_34_EnhancedMeansRevision2AndFourOctets(t *testing.T) {
	_, s := initiate(t, Options{}, 16, 8, frameR6)
	require.Equal(t, unhex(frameR5), s.wire(), "revision 2, S, and the enhanced data with every RTR that we send")
	for name, o := range map[string]Options{
		"revision 1":                        rev1,
		"neither RTR nor depths are wanted": {ClientServer: true, FixedDepths: true},
	} {
		_, s = initiate(t, o, 16, 8, frameR2)
		require.Equal(t, unhex(frameR1), s.wire(), "%s, nothing enhanced is wanted: revision 1, no S, no octets", name)
	}
	for what, v := range map[string]struct {
		o    Options
		data string
	}{
		"depths alone":    {Options{ClientServer: true}, "00100008"},
		"an RTR alone":    {Options{FixedDepths: true}, "bfffffff"},
		"one RTR":         {Options{RTR: transport.RTRSend}, "c0100008"},
		"Markers, no CRC": {Options{Markers: true, NoCRC: true}, "8010c008"},
	} {
		_, s := initiate(t, v.o, 16, 8, frameR6)
		f, n, err := ParseRequestHeader(s.wire())
		require.NoError(t, err, what)
		require.True(t, f.Enhanced, "%s: S", what)
		require.EqualValues(t, 2, f.Revision, what)
		require.Equal(t, 4, n, "%s: private data is the four octets", what)
		require.Equal(t, unhex(v.data), s.wire()[HeaderSize:], what)
	}
}

func TestMPA2_4_ReservedBitsOfRevision2AreIgnored(t *testing.T) {
	r, _ := initiate(t, Options{}, 16, 16, keyRep+"5f020004 80108010")
	require.NoError(t, r.err)
	r, s := respond(t, Options{}, 16, 16, keyReq+"5f020004 80108010")
	require.NoError(t, r.err)
	require.Equal(t, unhex("50"), s.wire()[16:17], "and sent as 0")
}

func TestMPA2_5_EnhancedDataIsHiddenFromTheULP(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		p.send(unhex(frameR7))
		r, err := ReadRequest(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, "hi", string(r.PrivateData()))
		_, terms, err := r.Accept(t.Context(), Options{}, 1, 1, []byte("ho"))
		require.NoError(t, err)
		require.Equal(t, "hi", string(terms.PeerPrivateData))
		p.want("PD_Length counts the four octets", unhex(keyRep+"50020006 3fff3fff 686f"))
	})
}

func TestMPA2_8_TheKindsOfRTRAreTheULPsToChoose(t *testing.T) {
	for _, v := range []struct {
		rtr     transport.RTR
		request string
	}{
		{transport.RTRSend, "c0010001"}, {transport.RTRWrite, "80018001"}, {transport.RTRRead, "80014001"}, {transport.RTRSend | transport.RTRRead, "c0014001"},
	} {
		_, s := initiate(t, Options{RTR: v.rtr}, 1, 1, keyRep+"50020004"+v.request)
		require.Equal(t, unhex(v.request), s.wire()[20:], "offer of %v", v.rtr)
	}
}

func TestMPA2_9_BothULPsLearnThePeersDepths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := transport.Pipe(transport.PipeOptions{})
		defer x.Close()
		defer y.Close()
		connected := connect(t.Context(), transport.NewStream(x, nil), Options{}, 7, 5, "")
		r, err := ReadRequest(t.Context(), transport.NewStream(y, nil))
		require.NoError(t, err)
		require.Equal(t, 7, r.PeerIRD(), "told before the ULP answers")
		require.Equal(t, 5, r.PeerORD())
		_, b, err := r.Accept(t.Context(), Options{}, 4, 9, nil)
		require.NoError(t, err)
		require.Equal(t, []int{7, 5, 4, 7}, []int{b.PeerIRD, b.PeerORD, b.IRD, b.ORD}, "the responder")
		a := connected().terms
		require.Equal(t, []int{4, 7, 7, 4}, []int{a.PeerIRD, a.PeerORD, a.IRD, a.ORD}, "the initiator")
	})
	r, _ := initiate(t, Options{}, 3, 2, keyRep+"50020004 bfffbfff")
	require.Equal(t, []int{-1, -1, 3, 2}, []int{r.terms.PeerIRD, r.terms.PeerORD, r.terms.IRD, r.terms.ORD},
		"depths that are left to the ULP")
}

func TestMPA2_12_15_RejectTellsTheDepthsThatWereNeeded(t *testing.T) {
	r, s := initiate(t, Options{}, 16, 8, keyRep+"70020006 80400080 6e6f")
	var rejected *RejectError
	require.ErrorAs(t, r.err, &rejected)
	require.Equal(t, RejectError{PrivateData: []byte("no"), IRD: 64, ORD: 128}, *rejected)
	require.Zero(t, s.closed, "the connection is left to the ULP")
}

// TestMPA2_3_15_RejectWithoutItsDepths: an enhanced Reject that is shorter than the four octets is malformed, and no refusal.
func TestMPA2_3_15_RejectWithoutItsDepths(t *testing.T) {
	for _, private := range []string{"0000", "0001 80", "0002 8040", "0003 804000"} {
		r, s := initiate(t, Options{}, 16, 8, keyRep+"7002"+private)
		var fault *transport.Fault
		require.ErrorAs(t, r.err, &fault, private)
		require.Equal(t, transport.MPAStartup, fault.Code)
		var rejected *RejectError
		require.NotErrorAs(t, r.err, &rejected)
		require.NotZero(t, s.closed)
	}
}

func TestMPA2_30_TermsHoldBeforeTheRTR(t *testing.T) {
	r, s := initiate(t, Options{}, 16, 8, keyRep+"50020004 80028010")
	require.NoError(t, r.err)
	require.Equal(t, []int{16, 2}, []int{r.terms.IRD, r.terms.ORD}, "what was negotiated")
	require.Equal(t, transport.RTRWrite, r.terms.RTR, "what is to be sent first")
	require.Len(t, s.writes, 1, "nothing but the Request has been sent so far")
}

func TestMPA2_14_27_37_FailedNegotiationNamesTheTerminate(t *testing.T) {
	for _, v := range []struct {
		what, reply string
		want        transport.Code
	}{
		{"more Reads than we take", keyRep + "50020004 80108011", transport.MPAInsufficientIRD},
		{"only an RTR by Send", keyRep + "50020004 c0100010", transport.MPANoRTR},
		{"no RTR", keyRep + "50020004 80100010", transport.MPANoRTR},
	} {
		r, s := initiate(t, Options{}, 16, 16, v.reply)
		require.NoError(t, r.err, v.what)
		require.NotNil(t, r.terms.Fault, v.what)
		require.Equal(t, v.want, r.terms.Fault.Code, v.what)
		require.EqualValues(t, 2, v.want.Layer(), "the layer is MPA")
		require.Zero(t, v.want.Type())
		require.Zero(t, s.closed, "the Terminate can still be sent")
		require.True(t, r.conn.Append(octets(22), nil, true))
		require.NoError(t, r.conn.Flush(true))
	}
}

func TestMPA2_32_EnhancedRequestGetsAnEnhancedReply(t *testing.T) {
	r, s := respond(t, Options{}, 8, 16, keyReq+"50020004 8010c008")
	require.NoError(t, r.err)
	require.Equal(t, unhex(frameR6), s.wire())
	require.Equal(t, transport.RTRWrite, r.terms.RTR, "what will come")

	s = &script{reads: [][]byte{unhex(keyReq + "50020004 8010c008")}}
	req, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, req.Reject(t.Context(), -1, -1, nil))
	require.Equal(t, unhex(keyRep+"70020004 80088010"), s.wire(), "a refusal too; the depths asked for would have done")

	for _, reply := range []string{"40020000", "40010000", "50010004 80108010"} {
		r, s := initiate(t, Options{}, 16, 16, keyRep+reply)
		requireFault(t, transport.MPAStartup, r.err, "an initiator does not take less: %s", reply)
		require.Equal(t, 1, s.closed)
	}
}

func TestARefusalIsHeardInAnyForm(t *testing.T) {
	for _, reply := range []string{"60010000", "60020000", "70020004 80108010"} {
		r, _ := initiate(t, Options{}, 16, 16, keyRep+reply)
		var rejected *RejectError
		require.ErrorAs(t, r.err, &rejected, reply)
	}
}

func TestMPA2_35_AHostForRevision1ClosesOnAnEnhancedRequest(t *testing.T) {
	r, s := respond(t, rev1, 1, 1, frameR5)
	requireFault(t, transport.MPAStartup, r.err)
	require.Empty(t, s.writes, "nothing is answered")
	require.Equal(t, 1, s.closed)
}

func TestMPA2_36_CloseWithoutAReplyIsTold(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, Options{}, 16, 8, "")
		p.want("R5", unhex(frameR5))
		require.NoError(t, p.c.Close())
		require.ErrorIs(t, connected().err, ErrNoReply, "a FIN where the Reply was due")
	})
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, Options{}, 16, 8, "")
		p.want("R5", unhex(frameR5))
		require.NoError(t, p.c.(interface{ Abort() error }).Abort())
		err := connected().err
		require.ErrorIs(t, err, ErrNoReply, "a RST where the Reply was due")
		requireFault(t, transport.MPAConnectionLost, err)
	})
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, rev1, 16, 8, "")
		p.want("R1", unhex(frameR1))
		require.NoError(t, p.c.Close())
		require.NotErrorIs(t, connected().err, ErrNoReply, "to less than that there is nothing to fall back to")
	})
}

func TestMPA2_38_SEC_40_EnhancedDataIsCheckedForSanity(t *testing.T) {
	for n := range 4 {
		pd := string([]byte{'0', byte('0' + n)}) + "00000000"[:2*n]
		r, s := respond(t, Options{}, 1, 1, keyReq+"500200"+pd)
		requireFault(t, transport.MPAStartup, r.err, "a Request whose enhanced data is %d octets", n)
		require.Equal(t, 1, s.closed)
		require.Empty(t, s.writes)
		r, s = initiate(t, Options{}, 1, 1, keyRep+"500200"+pd)
		requireFault(t, transport.MPAStartup, r.err, "a Reply whose enhanced data is %d octets", n)
		require.Equal(t, 1, s.closed)
	}
}

func TestDepthsBelowZeroAreNone(t *testing.T) {
	_, s := initiate(t, Options{}, -1, -1, keyRep+"50020004 80008000")
	require.Equal(t, unhex("80008000"), s.wire()[20:], "IRD and ORD of the Request")
	r, s := respond(t, rev1, -1, -1, frameR1)
	require.Equal(t, unhex(frameR2), s.wire())
	require.Equal(t, 1, r.terms.IRD, "for an RTR by Read, which an initiator may send without negotiation")
	require.Zero(t, r.terms.ORD)
	r, _ = respond(t, Options{}, -1, -1, keyReq+"50020004 80048008")
	require.Zero(t, r.terms.IRD)
	require.Zero(t, r.terms.ORD)
}

package iwarp_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// The negotiation of RFC 6581 section 9, row by row, against scripted peers. Frames are
// given from their flags on: flags, revision, length, then A|B|IRD and C|D|ORD.

// What opens Full Operation, as segments.
const (
	anEmptyWrite = "c1 40 00000000 0000000000000000"
	anEmptyRead  = "41 41 00000000 00000001 00000001 00000000 00000000 0000000000000000 00000000 00000000 0000000000000000"
	anEmptySend  = "41 43 00000000 00000000 00000001 00000000"

	aMessage      = "41 43 00000000 00000000 00000001 00000000 68 69" // "hi"
	aMessageLater = "41 43 00000000 00000000 00000002 00000000 68 69" // behind an RTR by Send

	insufficientIRD = "41 47 00000000 00000002 00000001 00000000 20 06 00 00"
	noMatchingRTR   = "41 47 00000000 00000002 00000001 00000000 20 07 00 00"
)

// depths are IRD and ORD, or those of the peer.
type depths [2]int

var untold = depths{-1, -1}

func TestMPA2_14_18_19_20_26_27_28_InitiatorsTable(t *testing.T) {
	peerToPeer := iwarp.MPAOptions{}
	only := func(r iwarp.RTR) iwarp.MPAOptions { return iwarp.MPAOptions{RTR: r} }
	every := only(iwarp.RTRSend | iwarp.RTRWrite | iwarp.RTRRead)
	clientServer := iwarp.MPAOptions{ClientServer: true}
	fixed := iwarp.MPAOptions{FixedDepths: true}
	strictDepths, strictRTR := iwarp.MPAOptions{StrictDepths: true}, iwarp.MPAOptions{StrictRTR: true}
	for _, c := range []struct {
		why     string
		o       iwarp.MPAOptions
		ours    depths
		request string
		reply   string
		first   string // the first segment
		want    depths
		peer    depths
	}{
		// RTR: B, C and D of the Reply to an offer of C and D.
		{"C", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8008 8004", anEmptyWrite, depths{4, 8}, depths{8, 4}},
		{"D", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8008 4004", anEmptyRead, depths{4, 8}, depths{8, 4}},
		{"C and D", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8008 c004", anEmptyWrite, depths{4, 8}, depths{8, 4}},
		{"B and D: one that was not offered", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 c008 4004", anEmptyRead, depths{4, 8}, depths{8, 4}},
		{"B, C and D", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 c008 c004", anEmptyWrite, depths{4, 8}, depths{8, 4}},
		{"B alone", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 c008 0004", noMatchingRTR, depths{4, 8}, depths{8, 4}},
		{"none", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8008 0004", noMatchingRTR, depths{4, 8}, depths{8, 4}},
		{"A=0: a peer that knows no RTR", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 0008 0004", aMessage, depths{4, 8}, depths{8, 4}},
		{"A=0, so that C and D mean nothing", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 0008 c004", aMessage, depths{4, 8}, depths{8, 4}},
		// Other offers.
		{"B of B", only(iwarp.RTRSend), depths{4, 8}, "50 02 0004 c004 0008", "50 02 0004 c008 0004", anEmptySend, depths{4, 8}, depths{8, 4}},
		{"C of B", only(iwarp.RTRSend), depths{4, 8}, "50 02 0004 c004 0008", "50 02 0004 8008 8004", noMatchingRTR, depths{4, 8}, depths{8, 4}},
		{"C of C", only(iwarp.RTRWrite), depths{4, 8}, "50 02 0004 8004 8008", "50 02 0004 8008 8004", anEmptyWrite, depths{4, 8}, depths{8, 4}},
		{"D of C", only(iwarp.RTRWrite), depths{4, 8}, "50 02 0004 8004 8008", "50 02 0004 8008 4004", noMatchingRTR, depths{4, 8}, depths{8, 4}},
		{"D of D", only(iwarp.RTRRead), depths{4, 8}, "50 02 0004 8004 4008", "50 02 0004 8008 4004", anEmptyRead, depths{4, 8}, depths{8, 4}},
		{"B of B, C and D", every, depths{4, 8}, "50 02 0004 c004 c008", "50 02 0004 c008 0004", anEmptySend, depths{4, 8}, depths{8, 4}},
		{"B and D of B, C and D", every, depths{4, 8}, "50 02 0004 c004 c008", "50 02 0004 c008 4004", anEmptyRead, depths{4, 8}, depths{8, 4}},
		{"no Read without an ORD", every, depths{4, -1}, "50 02 0004 c004 8000", "50 02 0004 8008 8004", anEmptyWrite, depths{4, 0}, depths{8, 4}},
		{"strictly: B, C and D", strictRTR, depths{4, 8}, "50 02 0004 c004 c008", "50 02 0004 8008 c004", anEmptyWrite, depths{4, 8}, depths{8, 4}},
		{"strictly: B of them", strictRTR, depths{4, 8}, "50 02 0004 c004 c008", "50 02 0004 c008 0004", anEmptySend, depths{4, 8}, depths{8, 4}},
		{"strictly, without an ORD", strictRTR, depths{4, -1}, "50 02 0004 c004 8000", "50 02 0004 8008 8004", anEmptyWrite, depths{4, 0}, depths{8, 4}},
		{"strictly, of one kind", iwarp.MPAOptions{StrictRTR: true, RTR: iwarp.RTRRead}, depths{4, 8}, "50 02 0004 8004 4008", "50 02 0004 8008 4004", anEmptyRead, depths{4, 8}, depths{8, 4}},
		{"strictly, client-server", iwarp.MPAOptions{StrictRTR: true, ClientServer: true}, depths{4, 8}, "50 02 0004 0004 0008", "50 02 0004 0008 0004", aMessage, depths{4, 8}, depths{8, 4}},
		// The client-server model.
		{"client-server", clientServer, depths{4, 8}, "50 02 0004 0004 0008", "50 02 0004 0008 0004", aMessage, depths{4, 8}, depths{8, 4}},
		{"a Reply with A=1 all the same", clientServer, depths{4, 8}, "50 02 0004 0004 0008", "50 02 0004 8008 8004", noMatchingRTR, depths{4, 8}, depths{8, 4}},
		// Depths.
		{"less than asked", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8002 8001", anEmptyWrite, depths{4, 2}, depths{2, 1}},
		{"more than asked", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8020 8004", anEmptyWrite, depths{4, 8}, depths{32, 4}},
		{"an ORD above our IRD", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8008 8005", insufficientIRD, depths{4, 8}, depths{8, 5}},
		{"the same, and no RTR", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8008 0005", insufficientIRD, depths{4, 8}, depths{8, 5}},
		{"no Reads taken", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8000 8004", anEmptyWrite, depths{4, 0}, depths{0, 4}},
		{"no Reads taken, but as RTR", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8000 4004", noMatchingRTR, depths{4, 0}, depths{0, 4}},
		{"both 0: siw did not say", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8000 8000", anEmptyWrite, depths{4, 8}, depths{0, 0}},
		{"both 0, believed", strictDepths, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8000 8000", anEmptyWrite, depths{4, 0}, depths{0, 0}},
		{"both 0, believed: no RTR by Read", strictDepths, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8000 4000", noMatchingRTR, depths{4, 0}, depths{0, 0}},
		{"believed where nothing is 0", strictDepths, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8002 8001", anEmptyWrite, depths{4, 2}, depths{2, 1}},
		{"we want none", peerToPeer, depths{-1, -1}, "50 02 0004 8000 8000", "50 02 0004 8008 8000", anEmptyWrite, depths{0, 0}, depths{8, 0}},
		{"the IRD is left to the ULP", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 bfff 8004", anEmptyWrite, depths{4, 8}, depths{-1, 4}},
		{"the ORD is left to the ULP", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 8006 bfff", anEmptyWrite, depths{4, 6}, depths{6, -1}},
		{"both are", peerToPeer, depths{4, 8}, "50 02 0004 8004 c008", "50 02 0004 bfff bfff", anEmptyWrite, depths{4, 8}, untold},
		{"we leave both", fixed, depths{4, 8}, "50 02 0004 bfff ffff", "50 02 0004 bfff bfff", anEmptyWrite, depths{4, 8}, untold},
		{"we leave both, but it negotiates", fixed, depths{4, 8}, "50 02 0004 bfff ffff", "50 02 0004 8002 8001", anEmptyWrite, depths{4, 2}, depths{2, 1}},
		{"and wants more than we take", fixed, depths{4, 8}, "50 02 0004 bfff ffff", "50 02 0004 8002 8005", insufficientIRD, depths{4, 2}, depths{2, 5}},
		// Without RFC 6581.
		{"revision 1", iwarp.MPAOptions{Revision: 1}, depths{4, 8}, "40 01 0000", "40 01 0000", aMessage, depths{4, 8}, untold},
		{"nothing enhanced is wanted", iwarp.MPAOptions{ClientServer: true, FixedDepths: true}, depths{4, 8}, "40 01 0000", "40 01 0000", aMessage, depths{4, 8}, untold},
	} {
		t.Run(c.why, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				done := make(chan struct{})
				var ours, told depths
				err := s.dialTo(iwarp.QPConfig{IRD: c.ours[0], ORD: c.ours[1], MPA: c.o}, func(p *wiretest.Peer) {
					defer close(done)
					p.WantRequest(c.request)
					p.Write(append([]byte(wiretest.ReplyKey), wiretest.Hex(c.reply)...))
					p.WantSegment("the first segment", c.first)
					switch c.first {
					case aMessage: // it is the application's
					case anEmptySend:
						p.WantSegment("the application's comes next", aMessageLater)
					case anEmptyWrite, anEmptyRead:
						p.WantSegment("the application's comes next", aMessage)
					default:
						p.WantEOF("nothing follows a Terminate")
					}
				})
				if c.first == insufficientIRD || c.first == noMatchingRTR {
					var te *iwarp.TerminateError
					require.ErrorAs(t, err, &te)
					require.Equal(t, wiretest.Hex(c.first)[18:20], []byte{te.Layer<<4 | te.Type, te.Code})
					<-done
					return
				}
				require.NoError(t, err)
				ours, told = depths{s.qp.IRD(), s.qp.ORD()}, depths{s.qp.PeerIRD(), s.qp.PeerORD()}
				require.Equal(t, c.want, ours, "IRD and ORD to keep to")
				require.Equal(t, c.peer, told, "what the peer told reaches the application")
				require.NoError(t, s.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hi")}))
				<-done
				require.NoError(t, s.qp.Abort())
			})
		})
	}
}

func TestMPA2_10_11_16_17_21_22_23_25_29_32_33_RespondersTable(t *testing.T) {
	all := iwarp.MPAOptions{}
	only := func(r iwarp.RTR) iwarp.MPAOptions { return iwarp.MPAOptions{RTR: r} }
	for _, c := range []struct {
		why     string
		o       iwarp.MPAOptions
		ours    depths
		request string
		reply   string
		first   string // what the initiator then begins with; "": a Terminate
		want    depths
		peer    depths
	}{
		// RTR: B, C and D of the Request.
		{"C", all, depths{8, 4}, "50 02 0004 8004 8008", "50 02 0004 8008 8004", anEmptyWrite, depths{8, 4}, depths{4, 8}},
		{"D", all, depths{8, 4}, "50 02 0004 8004 4008", "50 02 0004 8008 4004", anEmptyRead, depths{8, 4}, depths{4, 8}},
		{"B", all, depths{8, 4}, "50 02 0004 c004 0008", "50 02 0004 c008 0004", anEmptySend, depths{8, 4}, depths{4, 8}},
		{"C and D", all, depths{8, 4}, "50 02 0004 8004 c008", "50 02 0004 8008 8004", anEmptyWrite, depths{8, 4}, depths{4, 8}},
		{"B and C", all, depths{8, 4}, "50 02 0004 c004 8008", "50 02 0004 8008 8004", anEmptyWrite, depths{8, 4}, depths{4, 8}},
		{"B and D", all, depths{8, 4}, "50 02 0004 c004 4008", "50 02 0004 8008 4004", anEmptyRead, depths{8, 4}, depths{4, 8}},
		{"B, C and D", all, depths{8, 4}, "50 02 0004 c004 c008", "50 02 0004 8008 8004", anEmptyWrite, depths{8, 4}, depths{4, 8}},
		{"none", all, depths{8, 4}, "50 02 0004 8004 0008", "50 02 0004 8008 8004", "", depths{8, 4}, depths{4, 8}},
		{"A=0", all, depths{8, 4}, "50 02 0004 0004 0008", "50 02 0004 0008 0004", anEmptyWrite, depths{8, 4}, depths{4, 8}},
		{"A=0, so that B, C and D mean nothing", all, depths{8, 4}, "50 02 0004 4004 c008", "50 02 0004 0008 0004", anEmptySend, depths{8, 4}, depths{4, 8}},
		// One that takes only some.
		{"D is taken of C and D", only(iwarp.RTRRead), depths{8, 4}, "50 02 0004 8004 c008", "50 02 0004 8008 4004", anEmptyRead, depths{8, 4}, depths{4, 8}},
		{"B is taken of B, C and D", only(iwarp.RTRSend), depths{8, 4}, "50 02 0004 c004 c008", "50 02 0004 c008 0004", anEmptySend, depths{8, 4}, depths{4, 8}},
		{"C would be taken, D is offered", only(iwarp.RTRWrite), depths{8, 4}, "50 02 0004 8004 4008", "50 02 0004 8008 8004", "", depths{8, 4}, depths{4, 8}},
		{"D would be taken, C is offered", only(iwarp.RTRRead), depths{-1, 4}, "50 02 0004 8004 8008", "50 02 0004 8001 4004", "", depths{1, 4}, depths{4, 8}},
		// Depths.
		{"an ORD above the initiator's IRD", all, depths{8, 9}, "50 02 0004 8004 8008", "50 02 0004 8008 8004", anEmptyWrite, depths{8, 4}, depths{4, 8}},
		{"an initiator that takes no Reads", all, depths{8, 9}, "50 02 0004 8000 8008", "50 02 0004 8008 8000", anEmptyWrite, depths{8, 0}, depths{0, 8}},
		{"an IRD below the initiator's ORD is told as it is", all, depths{2, 4}, "50 02 0004 8004 8008", "50 02 0004 8002 8004", anEmptyWrite, depths{2, 4}, depths{4, 8}},
		{"an IRD above it too", all, depths{20, 4}, "50 02 0004 8004 8008", "50 02 0004 8014 8004", anEmptyWrite, depths{20, 4}, depths{4, 8}},
		{"no IRD, but an RTR by Read", all, depths{-1, 4}, "50 02 0004 8004 4000", "50 02 0004 8001 4004", anEmptyRead, depths{1, 4}, depths{4, 0}},
		{"no IRD and none needed", all, depths{-1, 4}, "50 02 0004 8004 8000", "50 02 0004 8000 8004", anEmptyWrite, depths{0, 4}, depths{4, 0}},
		{"ORD 0x3FFF leaves our IRD", all, depths{8, 9}, "50 02 0004 8004 bfff", "50 02 0004 bfff 8004", anEmptyWrite, depths{8, 4}, depths{4, -1}},
		{"IRD 0x3FFF leaves our ORD", all, depths{8, 9}, "50 02 0004 bfff 8004", "50 02 0004 8008 bfff", anEmptyWrite, depths{8, 9}, depths{-1, 4}},
		{"both", all, depths{8, 9}, "50 02 0004 bfff bfff", "50 02 0004 bfff bfff", anEmptyWrite, depths{8, 9}, untold},
		{"both, and an RTR by Read", all, depths{-1, 9}, "50 02 0004 bfff 7fff", "50 02 0004 bfff 7fff", anEmptyRead, depths{1, 9}, untold},
		{"both, client-server", all, depths{8, 9}, "50 02 0004 3fff 3fff", "50 02 0004 3fff 3fff", anEmptySend, depths{8, 9}, untold},
		// Without RFC 6581.
		{"revision 1", all, depths{8, 9}, "40 01 0000", "40 01 0000", anEmptyWrite, depths{8, 9}, untold},
		{"revision 1, first a Send", all, depths{8, 9}, "40 01 0000", "40 01 0000", anEmptySend, depths{8, 9}, untold},
		{"revision 1 with S, which was reserved then", all, depths{8, 9}, "50 01 0004 8004 8008", "40 01 0000", anEmptyWrite, depths{8, 9}, untold},
		{"revision 2 without S", all, depths{8, 9}, "40 02 0000", "40 02 0000", anEmptyWrite, depths{8, 9}, untold},
	} {
		t.Run(c.why, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(c.request))
				require.Equal(t, c.peer, depths{cr.IRD(), cr.ORD()}, "the application learns them before it answers")
				qp, err := cr.Accept(testContext(t), &iwarp.QPConfig{
					PD: s.pd, IRD: c.ours[0], ORD: c.ours[1], MPA: c.o,
					Setup: func(_ context.Context, qp *iwarp.QP) error { return qp.PostRecv(iwarp.RecvWR{ID: 7}) },
				})
				require.NoError(t, err)
				p.WantReply("the Reply", c.reply)
				require.Equal(t, c.want, depths{qp.IRD(), qp.ORD()}, "IRD and ORD to keep to")
				require.Equal(t, c.peer, depths{qp.PeerIRD(), qp.PeerORD()})
				require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hi")}))
				if c.first == "" {
					p.SendHex("a Terminate in place of the RTR", noMatchingRTR)
					p.WantEOF("nothing more is sent")
					p.Close()
					<-qp.Done()
					require.True(t, qp.Terminated().Remote)
					return
				}
				p.SendHex("what opens Full Operation", c.first)
				if c.first == anEmptyRead {
					// The answer and the application's message may come in either order.
					got := [][]byte{p.Segment(), p.Segment()}
					require.ElementsMatch(t, [][]byte{wiretest.Hex(aMessage), wiretest.Hex("c1 42 00000000 0000000000000000")}, got)
				} else {
					p.WantSegment("the application's message may go out", aMessage)
				}
				synctest.Wait()
				n := qp.RecvCQ().Poll(make([]iwarp.WC, 1))
				require.Equal(t, c.first == anEmptySend, n == 1, "only a Send uses up a receive")
				require.NoError(t, qp.Abort())
			})
		})
	}
}

// TestMPA2_8_22_PeerToPeerLetsEitherSideBegin: with the two ends of this library, and
// each kind of RTR. In the client-server model the responder waits.
func TestMPA2_8_22_PeerToPeerLetsEitherSideBegin(t *testing.T) {
	for _, o := range []iwarp.MPAOptions{{}, {RTR: iwarp.RTRSend}, {RTR: iwarp.RTRWrite}, {RTR: iwarp.RTRRead}, {FixedDepths: true}, {ClientServer: true}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				post := func(_ context.Context, qp *iwarp.QP) error { return qp.PostRecv(iwarp.RecvWR{}, iwarp.RecvWR{}) }
				client, server := connect(t, pairConfig{
					network: "pipe",
					client:  iwarp.QPConfig{MPA: o, Setup: post}, server: iwarp.QPConfig{Setup: post},
				})
				require.NoError(t, server.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
				synctest.Wait()
				if got := client.qp.RecvCQ().Poll(make([]iwarp.WC, 1)); o.ClientServer {
					require.Zero(t, got, "the server may not begin")
					require.NoError(t, client.qp.Send(testContext(t)))
					client.completes(client.qp.RecvCQ(), 1)
				} else {
					require.Equal(t, 1, got, "the responder may begin")
				}
			})
		})
	}
}

func TestMPA2_12_15_RejectionMayNameTheDepthsThatAreNeeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex("50 02 0004 8002 8008"))
		require.NoError(t, cr.RejectDepths([]byte("more"), -1, 6))
		p.WantReply("our IRD would have done, the initiator's would not", "70 02 0008 8008 8006 6d6f7265")
		p.WantEOF("and the connection is closed")

		err := s.dialTo(iwarp.QPConfig{IRD: 2, ORD: 8}, func(p *wiretest.Peer) {
			p.WantRequest("50 02 0004 8002 c008")
			p.Write(append([]byte(wiretest.ReplyKey), wiretest.Hex("70 02 0008 8008 8006 6d6f7265")...))
		})
		var rej *iwarp.RejectError
		require.ErrorAs(t, err, &rej)
		require.Equal(t, &iwarp.RejectError{PrivateData: []byte("more"), IRD: 8, ORD: 6}, rej)
	})
}

// TestMPA2_37_CodesOfSetUpThatAreNot: siw means 0/2/06, an unexpected opcode, when it
// says 2/0/06 without a header at any time but in place of an initiator's first message.
func TestMPA2_37_CodesOfSetUpThatAreNot(t *testing.T) {
	const unexpectedOpcode = "41 47 00000000 00000002 00000001 00000000 02 06 00 00"
	for why, c := range map[string]struct {
		initiator bool // we are
		before    string
		says      string
		want      uint16
	}{
		"an initiator, at first":           {false, "", insufficientIRD, 0x2006},
		"an initiator, of the RTR":         {false, "", noMatchingRTR, 0x2007},
		"an initiator, later":              {false, anEmptyWrite, insufficientIRD, 0x0206},
		"a responder, at first":            {true, "", insufficientIRD, 0x0206},
		"a responder, later":               {true, anEmptyWrite, noMatchingRTR, 0x0207},
		"a responder that says it rightly": {true, "", unexpectedOpcode, 0x0206},
	} {
		t.Run(why, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSide(t, nil)
				meet := initiator // is whom the test plays
				if c.initiator {
					meet = responder
				}
				p, qp := meet(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
				if c.before != "" {
					p.SendHex("something else before", c.before)
				}
				p.SendHex("a Terminate", c.says)
				<-qp.Done()
				require.Equal(t, c.want, uint16(codeOf(qp.Terminated())))
				require.True(t, qp.Terminated().Remote)
			})
		})
	}
}

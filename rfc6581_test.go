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

// The negotiation of RFC 6581 section 9, against scripted peers.

// The first messages in Full Operation, as segments.
const (
	anEmptyWrite = "c1 40 00000000 0000000000000000"

	insufficientIRD = "41 47 00000000 00000002 00000001 00000000 20 06 00 00"
	noMatchingRTR   = "41 47 00000000 00000002 00000001 00000000 20 07 00 00"
)

func TestMPA2_14_18_19_20_26_27_28_InitiatorsTable(t *testing.T) {
	wiretest.RunScript(t, "testdata/setup/initiator.txt", map[string]wiretest.Command{"dial": dialScript})
}

func TestMPA2_10_11_16_17_21_22_23_25_29_32_33_RespondersTable(t *testing.T) {
	wiretest.RunScript(t, "testdata/setup/responder.txt", map[string]wiretest.Command{"accept": acceptScript})
}

// TestMPA2_8_22_PeerToPeerLetsEitherSideBegin: with two ends of this library, and each kind of RTR. In the client-server
// model the responder waits.
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

// TestMPA2_37_CodesOfSetUpThatAreNot: siw means 0/2/06, an unexpected opcode, when it sends 2/0/06 without a header,
// except instead of an initiator's first message.
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
				meet := initiator // the role that the test plays
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

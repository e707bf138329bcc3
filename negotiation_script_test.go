package iwarp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// configOf reads the configuration of a QP from the arguments of a command.
func configOf(t *testing.T, d *datadriven.TestData) iwarp.QPConfig {
	t.Helper()
	var qc iwarp.QPConfig
	d.ScanArgs(t, "ird", &qc.IRD)
	d.ScanArgs(t, "ord", &qc.ORD)
	d.MaybeScanArgs(t, "revision", &qc.MPA.Revision)
	qc.MPA.ClientServer = d.HasArg("client-server")
	qc.MPA.FixedDepths = d.HasArg("fixed-depths")
	qc.MPA.StrictDepths = d.HasArg("strict-depths")
	qc.MPA.StrictRTR = d.HasArg("strict-rtr")
	if arg, ok := d.Arg("rtr"); ok {
		kinds := map[string]iwarp.RTR{"send": iwarp.RTRSend, "write": iwarp.RTRWrite, "read": iwarp.RTRRead}
		for _, v := range arg.Vals {
			require.Contains(t, kinds, v)
			qc.MPA.RTR |= kinds[v]
		}
	}
	return qc
}

// readFrame reads a Request or Reply, and returns what follows its key.
func readFrame(p *wiretest.Peer, key string) string {
	p.Helper()
	p.WantOctets("the key", []byte(key))
	b := p.Read(4)
	b = append(b, p.Read(int(binary.BigEndian.Uint16(b[2:])))...)
	s := fmt.Sprintf("%02x %02x %x", b[0], b[1], b[2:4])
	for data := b[4:]; len(data) > 0; data = data[min(2, len(data)):] {
		s += fmt.Sprintf(" %x", data[:min(2, len(data))])
	}
	return s
}

// depths formats IRD and ORD.
func depths(ird, ord int) string {
	told := func(n int) string {
		if n < 0 {
			return "not told"
		}
		return fmt.Sprint(n)
	}
	return "IRD " + told(ird) + ", ORD " + told(ord)
}

// dialScript is the command dial. The QP of this configuration is the initiator, and the peer answers with the Reply of
// the input. The output is the Request, everything that the peer gets after its Reply when the application has sent a
// message, and the depths that the application is told.
func dialScript(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, nil)
		var p *wiretest.Peer
		heard, over := make(chan []string, 1), make(chan struct{})
		err := s.dialTo(configOf(t, d), func(to *wiretest.Peer) {
			p = to
			fmt.Fprintln(&out, "request:", readFrame(p, wiretest.RequestKey))
			p.Reply(d.Input)
			synctest.Wait()
			lines := p.Heard(nil)
			heard <- lines
			if !slices.Contains(lines, wiretest.EndOfStream) {
				<-over
			}
		})
		defer close(over)
		lines := <-heard
		if err == nil {
			fmt.Fprintf(&out, "told: %s; of the peer: %s\n", depths(s.qp.IRD(), s.qp.ORD()), depths(s.qp.PeerIRD(), s.qp.PeerORD()))
			require.NoError(t, s.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hi")}))
			synctest.Wait()
			lines = append(lines, p.Heard(nil)...)
			require.NoError(t, s.qp.Abort())
		} else {
			require.Contains(t, lines, wiretest.EndOfStream)
			fmt.Fprintln(&out, "error:", causeOf(err))
		}
		for _, line := range lines {
			fmt.Fprintln(&out, "peer:", line)
		}
	})
	return out.String()
}

// acceptScript is the command accept. The QP of this configuration is the responder. The first line of the input is the
// peer's Request, the second one the segment that it sends after the Reply. The application has posted a receive and a
// message. The output is what the application is told, the Reply, what the peer gets before and after its segment, and
// whether that segment took the receive.
func acceptScript(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, nil)
		request, first, _ := strings.Cut(d.Input, "\n")
		p, cr := requester(t, s.rnic, "pipe", wiretest.Hex(request))
		asked := depths(cr.IRD(), cr.ORD())
		qc := configOf(t, d)
		qc.PD = s.pd
		qc.Setup = func(_ context.Context, qp *iwarp.QP) error { return qp.PostRecv(iwarp.RecvWR{ID: 7}) }
		qp, err := cr.Accept(testContext(t), &qc)
		require.NoError(t, err)
		require.Equal(t, asked, depths(qp.PeerIRD(), qp.PeerORD()), "the application learns them before it answers")
		fmt.Fprintln(&out, "reply:", readFrame(p, wiretest.ReplyKey))
		fmt.Fprintf(&out, "told: %s; of the peer: %s\n", depths(qp.IRD(), qp.ORD()), asked)
		require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hi")}))
		synctest.Wait()
		for _, line := range p.Heard(nil) {
			fmt.Fprintln(&out, "peer, too early:", line)
		}
		p.Send(wiretest.Names(nil).Parse(t, first)...)
		synctest.Wait()
		heard := p.Heard(nil)
		slices.Sort(heard) // the answer to an RTR by Read and the message may come in either order
		for _, line := range heard {
			fmt.Fprintln(&out, "peer:", line)
		}
		var te *iwarp.TerminateError
		if errors.As(qp.Err(), &te) {
			fmt.Fprintln(&out, "error:", causeOf(te))
		} else if qp.RecvCQ().Poll(make([]iwarp.WC, 1)) == 1 {
			fmt.Fprintln(&out, "the receive is used up")
		}
		require.NoError(t, qp.Abort())
	})
	return out.String()
}

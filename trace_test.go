package iwarp_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/pcap"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// needTool skips the test if a program is missing, and says which. Where the tools are required, it fails instead.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("IWARP_REQUIRE_TOOLS") == "1" {
		t.Fatalf("%s is required and missing: %v", name, err)
	}
	t.Skipf("needs %s: %v", name, err)
	return ""
}

// TestTraceIsDecodedByWireshark sends every opcode through both ends' traces and checks how tshark decodes them.
func TestTraceIsDecodedByWireshark(t *testing.T) {
	tshark := needTool(t, "tshark")
	for name, m := range map[string]iwarp.MPAOptions{
		"crc": {}, "no crc": {NoCRC: true}, "small": {MaxULPDU: 600}, "revision 1": {Revision: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var traces [2]bytes.Buffer
			pc := pairConfig{client: iwarp.QPConfig{MPA: m, Trace: &traces[0]}, server: iwarp.QPConfig{MPA: m, Trace: &traces[1]}}
			everyOpcode(t, pc)
			for i := range traces {
				text := decode(t, tshark, traces[i].Bytes())
				for _, want := range []string{
					"ID Req frame", "ID Rep frame", "OpCode: Write (0x0)", "OpCode: Read Request (0x1)",
					"OpCode: Read Response (0x2)", "OpCode: Send (0x3)", "OpCode: Send with Invalidate (0x4)",
					"OpCode: Send with SE (0x5)", "OpCode: Send with SE and Invalidate (0x6)", "OpCode: Terminate (0x7)",
				} {
					require.True(t, strings.Contains(text, want), "trace %d shows %q", i, want)
				}
				for _, bad := range []string{"Malformed", "Bad CRC", "Reassembly error"} {
					require.False(t, strings.Contains(text, bad), "trace %d shows %q", i, bad)
				}
			}
		})
	}
}

// decode returns tshark's description of a capture.
func decode(t *testing.T, tshark string, capture []byte) string {
	file := filepath.Join(t.TempDir(), "trace.pcap")
	require.NoError(t, os.WriteFile(file, capture, 0o600))
	out, err := exec.Command(tshark, "-o", "tcp.try_heuristic_first:TRUE", "-O", "iwarp_mpa,iwarp_ddp_rdmap", "-r", file).Output()
	require.NoError(t, err)
	return string(out)
}

// TestTraceWithMarkersIsDecodedByWireshark goes as far as tshark can: it does not find the FPDUs after an FPDU that ends
// where a Marker is due.
func TestTraceWithMarkersIsDecodedByWireshark(t *testing.T) {
	tshark := needTool(t, "tshark")
	var trace bytes.Buffer
	m := iwarp.MPAOptions{Markers: true}
	client, server := connect(t, pairConfig{client: iwarp.QPConfig{MPA: m, Trace: &trace}, server: iwarp.QPConfig{MPA: m}})
	arrived := func() bool { return server.qp.Stats().Received.RDMAWrite.Messages >= 1 }
	require.Eventually(t, arrived, 10*time.Second, time.Millisecond, "the RTR goes out by itself")
	require.NoError(t, client.qp.Close())
	text := decode(t, tshark, trace.Bytes())
	for _, want := range []string{"Marker flag: True", "FPDU back pointer: 0 bytes", "Good CRC32", "OpCode: Write (0x0)"} {
		require.True(t, strings.Contains(text, want), "the trace shows %q", want)
	}
	require.False(t, strings.Contains(text, "Malformed") || strings.Contains(text, "Bad CRC"))
}

// everyOpcode makes a connection on which each message of RFC 5040 passes.
func everyOpcode(t *testing.T, pc pairConfig) {
	client, server := connect(t, pc)
	ctx := testContext(t)
	_, local := client.register(4000, stag.LocalWrite, nil)
	_, remote := server.register(4000, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	_, mine := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: server.qp})
	_, mine2 := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: server.qp})
	for range 4 {
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{remote.Slice(0, 100)}}))
	}
	require.NoError(t, client.qp.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{local.Slice(0, 4000)}, Remote: remote.Advertise(0, 4000)},
		iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{local.Slice(0, 4000)}, Remote: remote.Advertise(0, 4000)},
		iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{local.Slice(0, 100)}},
		iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited, Local: []iwarp.SGE{local.Slice(0, 77)}},
		iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: mine.STag(), Inline: []byte("invalidate")},
		iwarp.SendWR{Op: iwarp.OpSendInvalidate, Flags: iwarp.Solicited, Invalidate: mine2.STag()},
	))
	succeed(t, ctx, server.qp.RecvCQ(), 4)
	succeed(t, ctx, client.qp.SendCQ(), 6)
	bad := remote.Advertise(0, 4000)
	bad.TO++
	require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{local.Slice(0, 4000)}, Remote: bad}))
	<-client.qp.Done()
	<-server.qp.Done()
	require.ErrorIs(t, client.qp.Err(), iwarp.ErrBounds)
	require.ErrorIs(t, server.qp.Err(), iwarp.ErrBounds)
}

// succeed waits for n successful completions.
func succeed(t *testing.T, ctx context.Context, cq *iwarp.CQ, n int) {
	t.Helper()
	for range n {
		var wc [1]iwarp.WC
		_, err := cq.Wait(ctx, wc[:])
		require.NoError(t, err)
		require.NoError(t, wc[0].Err())
	}
}

// TestTraceOfAFallback: the trace contains both connections.
func TestTraceOfAFallback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		addr := wiretest.Serve(t,
			func(p *wiretest.Peer) { p.WantRequest(wiretest.DefaultRequest) },
			func(p *wiretest.Peer) {
				p.WantRequest("40 01 0000")
				p.Reply("40 01 0000")
				p.WantEOF("nothing was posted")
			})
		var trace bytes.Buffer
		qp, err := s.rnic.Dial(testContext(t), "pipe", addr, &iwarp.QPConfig{PD: s.pd, Trace: &trace})
		require.NoError(t, err)
		_ = qp.Close()
		streams, err := pcap.Streams(&trace)
		require.NoError(t, err)
		require.Len(t, streams, 2)
		for i, revision := range []byte{2, 1} {
			require.Equal(t, revision, streams[i].ClientBytes[17], "connection %d", i)
		}
		require.Empty(t, streams[0].ServerBytes)
		require.Len(t, streams[1].ServerBytes, 20)
	})
}

// TestTraceHoldsARejection: the initiator's trace contains the rejecting Reply, too.
func TestTraceHoldsARejection(t *testing.T) {
	for _, client := range []bool{false, true} {
		s := newSide(t, nil)
		l, err := s.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", nil)
		require.NoError(t, err)
		go func() {
			if cr, err := l.Accept(testContext(t)); err == nil {
				_ = cr.Reject([]byte("not you"))
			}
		}()
		var trace bytes.Buffer
		qc := &iwarp.QPConfig{PD: s.pd, Trace: &trace}
		if client {
			c, dialErr := net.Dial("tcp", l.Addr().String())
			require.NoError(t, dialErr)
			defer c.Close()
			_, err = s.rnic.Client(testContext(t), c, qc)
		} else {
			_, err = s.rnic.Dial(testContext(t), "tcp", l.Addr().String(), qc)
		}
		require.ErrorIs(t, err, iwarp.ErrRejected)
		require.Contains(t, trace.String(), wiretest.RequestKey)
		require.Contains(t, trace.String(), wiretest.ReplyKey, "the Reply is recorded")
		require.Contains(t, trace.String(), "not you", "whole")
		require.NoError(t, l.Close())
	}
}

// A stuckFile blocks each Write from the closing of stuck until the closing of let.
type stuckFile struct{ stuck, runs, let chan struct{} }

func (f stuckFile) Write(p []byte) (int, error) {
	select {
	case <-f.stuck:
		f.runs <- struct{}{}
		<-f.let
	default:
	}
	return len(p), nil
}

// TestEndsAreBoundedWhileAWriteToTheTraceRuns: as they are while a Buffer works.
func TestEndsAreBoundedWhileAWriteToTheTraceRuns(t *testing.T) {
	for name, end := range map[string]func(s *side) error{
		"QP.Close":   func(s *side) error { return s.qp.Close() },
		"QP.Abort":   func(s *side) error { return s.qp.Abort() },
		"RNIC.Close": func(s *side) error { return s.rnic.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := stuckFile{stuck: make(chan struct{}), runs: make(chan struct{}, 100), let: make(chan struct{})}
			client, _ := connect(t, pairConfig{
				client: iwarp.QPConfig{Trace: file}, clientR: &iwarp.Config{CloseTimeout: 100 * time.Millisecond},
			})
			close(file.stuck)
			posted := make(chan error, 1)
			go func() { posted <- client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite}) }()
			<-file.runs
			ended := make(chan error, 1)
			go func() { ended <- end(client) }()
			select {
			case err := <-ended:
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			case <-time.After(10 * time.Second):
				require.Fail(t, "the end waits for the trace")
			}
			close(file.let)
			require.NoError(t, <-posted)
			<-client.qp.Done()
		})
	}
}

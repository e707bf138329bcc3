package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// segments reads back what a tap has written, with the fields that distinguish segments.
func segments(t *testing.T, file []byte) []pcap.Segment {
	t.Helper()
	r, err := pcap.NewReader(bytes.NewReader(file))
	require.NoError(t, err, "the file has a header")
	var segs []pcap.Segment
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return segs
		}
		require.NoError(t, err, "the file is whole")
		s, err := pcap.Parse(p.Link, p.Data)
		require.NoError(t, err, "every packet is a TCP segment")
		s.Payload = append([]byte(nil), s.Payload...)
		segs = append(segs, s)
	}
}

func TestTapGolden(t *testing.T) {
	local, remote := netip.MustParseAddrPort("[2001:db8::1]:5"), netip.MustParseAddrPort("[2001:db8::2]:6")
	seg := func(out bool, seq, ack uint32, f pcap.Flags, payload string) pcap.Segment {
		s := pcap.Segment{Src: local, Dst: remote, Seq: seq, Ack: ack, Flags: f, Payload: append([]byte(nil), payload...)}
		if !out {
			s.Src, s.Dst = s.Dst, s.Src
		}
		return s
	}
	for _, passive := range []bool{false, true} {
		var file bytes.Buffer
		ac, b := Pipe(PipeOptions{})
		a := Tap(NewStream(ac, nil), &file, TapOptions{Local: local, Remote: remote, Passive: passive})
		_, err := a.Write([][]byte{[]byte("que"), nil, []byte("stion")}, true)
		require.NoError(t, err, "the tapped end writes")
		mustWrite(t, b, "answer")
		_, err = a.Read(make([]byte, 100), Park)
		require.NoError(t, err, "the tapped end reads")
		require.NoError(t, a.CloseWrite(), "the tapped end closes its half")
		_, err = io.ReadAll(b)
		require.NoError(t, err, "the peer reads to the end")
		require.NoError(t, b.Close(), "the peer closes")
		for range 2 {
			_, err = a.Read(make([]byte, 100), Park)
			require.Equal(t, io.EOF, err, "the tapped end sees it")
		}
		require.NoError(t, a.Close(), "the tapped end closes")
		_ = a.Abort()
		require.Equal(t, []pcap.Segment{
			seg(!passive, 0, 0, pcap.SYN, ""),
			seg(passive, 0, 1, pcap.SYN|pcap.ACK, ""),
			seg(!passive, 1, 1, pcap.ACK, ""),
			seg(true, 1, 1, pcap.ACK|pcap.PSH, "question"),
			seg(false, 1, 9, pcap.ACK|pcap.PSH, "answer"),
			seg(true, 9, 7, pcap.FIN|pcap.ACK, ""),
			seg(false, 7, 10, pcap.FIN|pcap.ACK, ""),
		}, segments(t, file.Bytes()), "the conversation is recorded")
	}
}

// TestTapRecordsAFullReadBeforeTheFIN: a read that was filled is recorded with the next, or with what follows it.
func TestTapRecordsAFullReadBeforeTheFIN(t *testing.T) {
	var file bytes.Buffer
	ac, b := Pipe(PipeOptions{})
	a := Tap(NewStream(ac, nil), &file, TapOptions{})
	mustWrite(t, b, "answer")
	require.NoError(t, b.Close())
	buf := make([]byte, len("answer"))
	_, err := a.Read(buf, Park)
	require.NoError(t, err)
	_, err = a.Read(buf, Park)
	require.Equal(t, io.EOF, err)
	require.NoError(t, a.Close())
	segs := segments(t, file.Bytes())[3:]
	require.Equal(t, "answer", string(segs[0].Payload))
	require.Equal(t, pcap.FIN|pcap.ACK, segs[1].Flags)
	require.Equal(t, segs[0].Src, segs[1].Src)
}

func TestTapRecordsResets(t *testing.T) {
	for _, local := range []bool{true, false} {
		var file bytes.Buffer
		ac, b := Pipe(PipeOptions{})
		a := Tap(NewStream(ac, nil), &file, TapOptions{})
		if local {
			require.NoError(t, a.Abort(), "the tapped end aborts")
		} else {
			require.NoError(t, b.(*pipeConn).Abort(), "the peer aborts")
			_, err := a.Read(make([]byte, 1), Park)
			require.Error(t, err, "the tapped end learns it")
		}
		_ = a.Close()
		segs := segments(t, file.Bytes())
		require.Len(t, segs, 4, "nothing comes after the reset")
		require.Equal(t, pcap.RST|pcap.ACK, segs[3].Flags, "the reset is recorded")
		require.Equal(t, local, segs[3].Src == segs[0].Src, "with its direction")
		_ = b.Close()
	}
}

func TestTapRecordsStreams(t *testing.T) {
	var file bytes.Buffer
	ac, b := tcpPair(t)
	a := Tap(NewStream(ac, nil), &file, TapOptions{})
	sent := make([][]byte, 3)
	for i := range sent {
		sent[i] = bytes.Repeat([]byte{byte(i)}, 100_000)
	}
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		_, _ = io.Copy(b, b)
		_ = b.Close()
	}()
	go func() {
		_, _ = a.Write(sent, true)
		_ = a.CloseWrite()
	}()
	buf := make([]byte, 200_000)
	for {
		if _, err := a.Read(buf, Park); err != nil {
			require.Equal(t, io.EOF, err, "the echo ends")
			break
		}
	}
	<-echoed
	require.NoError(t, a.Close(), "the tapped end closes")
	streams, err := pcap.Streams(&file)
	require.NoError(t, err, "the file is read")
	all := bytes.Join(sent, nil)
	require.Equal(t, []pcap.Stream{{
		Client:      ac.LocalAddr().(*net.TCPAddr).AddrPort(),
		Server:      ac.RemoteAddr().(*net.TCPAddr).AddrPort(),
		ClientBytes: all, ServerBytes: all,
	}}, streams, "both directions are recorded with the addresses of the connection")
}

// A writer that fails after some octets.
type fullDisk int

var errFull = errors.New("disk full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if *d -= fullDisk(len(p)); *d < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestTapFailureLeavesTheConnection(t *testing.T) {
	for _, room := range []fullDisk{0, 30, 200} {
		ac, b := Pipe(PipeOptions{})
		a := Tap(NewStream(ac, nil), &room, TapOptions{})
		for range 5 {
			_, err := a.Write([][]byte{make([]byte, 100)}, true)
			require.NoError(t, err, "writing goes on")
		}
		mustWrite(t, b, "x")
		_, err := a.Read(make([]byte, 1), Park)
		require.NoError(t, err, "reading goes on")
		err = a.Close()
		require.ErrorIs(t, err, errFull, "Close tells that the recording is not whole")
		_, err = a.Read(make([]byte, 1), Park)
		require.ErrorIs(t, err, net.ErrClosed, "the connection is closed all the same")
		_ = b.Close()
	}
}

// A writer that panics after some Writes.
type panicking int

func (p *panicking) Write(b []byte) (int, error) {
	if *p--; *p < 0 {
		panic("no more")
	}
	return len(b), nil
}

// TestTapWriterThatPanics is one that fails: the panic does not reach the caller of Write or Read.
func TestTapWriterThatPanics(t *testing.T) {
	for good := range panicking(6) { // the header of the file, the handshake, an octet of each side
		ac, b := Pipe(PipeOptions{})
		writes := good
		a := Tap(NewStream(ac, nil), &writes, TapOptions{})
		_, err := a.Write([][]byte{make([]byte, 1)}, true)
		require.NoError(t, err, "writing goes on")
		mustWrite(t, b, "x")
		_, err = a.Read(make([]byte, 1), Park)
		require.NoError(t, err, "reading goes on")
		require.ErrorContains(t, a.Close(), "the Writer panicked: no more")
		require.EqualValues(t, -1, writes, "it is not called again")
		_ = b.Close()
	}
}

// TestTapIsDecodedByWireshark replays the kernel's connections through a tap: tshark
// must see in its file what it sees in the kernel's, and nothing to complain of.
func TestTapIsDecodedByWireshark(t *testing.T) {
	tshark := needTool(t, "tshark")
	for _, name := range []string{"knob_p2p_crc.pcap", "terminate_ddp_bounds.pcap"} {
		t.Run(name, func(t *testing.T) {
			capture, err := os.ReadFile(filepath.Join("..", "internal", "pcap", "testdata", name))
			require.NoError(t, err, "the capture is read")
			var file bytes.Buffer
			replay(t, segments(t, capture), &file)
			tapped := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(tapped, file.Bytes(), 0o600), "the tap's file is kept")

			fields := []string{"-T", "fields", "-Y", "iwarp_mpa"}
			for _, f := range []string{"mpa.req", "mpa.rep", "mpa.ulpdulength", "mpa.crc", "ddp.control_field", "ddp.msn", "rdma.opcode"} {
				fields = append(fields, "-e", "iwarp_"+f)
			}
			want := run(t, tshark, append(fields, "-r", filepath.Join("..", "internal", "pcap", "testdata", name))...)
			got := run(t, tshark, append(fields, "-r", tapped)...)
			require.NotEmpty(t, want, "tshark decodes the kernel's frames")
			require.Equal(t, want, got, "tshark decodes the same from the tap")

			bad := run(t, tshark, "-r", tapped, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
				"-Y", "ip.checksum.status==0 || tcp.checksum.status==0 || tcp.analysis.flags")
			require.Empty(t, bad, "checksums and sequence numbers are right")
		})
	}
}

// replay has a tapped client converse as in a capture.
func replay(t *testing.T, segs []pcap.Segment, file io.Writer) {
	client, server := segs[0].Src, segs[0].Dst
	ac, b := Pipe(PipeOptions{})
	a := Tap(NewStream(ac, nil), file, TapOptions{Local: client, Remote: server})
	buf := make([]byte, pcap.MaxPayload)
	for _, s := range segs {
		switch {
		case len(s.Payload) == 0:
		case s.Src == client:
			_, err := a.Write([][]byte{s.Payload[:1], s.Payload[1:]}, true)
			require.NoError(t, err, "the client writes")
			_, err = io.ReadFull(b, buf[:len(s.Payload)])
			require.NoError(t, err, "the server reads")
		default:
			mustWrite(t, b, string(s.Payload))
			n, err := a.Read(buf, Park)
			require.NoError(t, err, "the client reads")
			require.Equal(t, len(s.Payload), n, "all of it")
		}
	}
	require.NoError(t, b.Close(), "the server closes")
	_, err := a.Read(buf, Park)
	require.Equal(t, io.EOF, err, "the client sees the end")
	require.NoError(t, a.Close(), "the client closes")
}

// needTool returns the path of a program; a test without it is skipped, or fails
// where the environment promises all tools.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("IWARP_REQUIRE_TOOLS") == "1" {
		require.NoError(t, err, "IWARP_REQUIRE_TOOLS=1 promises %s", name)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

func run(t *testing.T, path string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(path, append([]string{"-n", "-o", "tcp.try_heuristic_first:TRUE"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %q: %s", path, args, stderr.String())
	return string(out)
}

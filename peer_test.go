package iwarp

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// A peer is the other end of a connection, played by the test octet by octet. It has
// its own framing, so that a mistake of package mpa does not cancel itself out: CRCs
// on, no Markers.
type peer struct {
	testing.TB
	c net.Conn
}

// hx turns "00 0e c1 40" into octets; blanks, bars and line ends do not count.
func hx(s string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// patience bounds every wait of a scripted peer.
const patience = 10 * time.Second

// initiator connects to a listener of r and plays the initiator: its Request asks
// for CRCs, revision 1, so that nothing is negotiated. The QP of qc is the responder.
func initiator(t testing.TB, r *RNIC, network string, qc *QPConfig) (*peer, *QP) {
	t.Helper()
	if reordering != 0 {
		return overRecords(t, r, qc)
	}
	p, cr := requester(t, r, network, hx("40 01 00 00"))
	qp, err := cr.Accept(context.Background(), qc)
	require.NoError(t, err)
	p.wantOctets("the Reply accepts, with CRCs", append([]byte(replyKey), hx("40 01 00 00")...))
	return p, qp
}

// requester connects to a listener of r, sends a Request that ends with rest, and
// returns what the listener makes of it.
func requester(t testing.TB, r *RNIC, network string, rest []byte) (*peer, *ConnRequest) {
	t.Helper()
	addr := ""
	if network != "pipe" {
		addr = "127.0.0.1:0"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := r.Listen(ctx, network, addr, nil)
	require.NoError(t, err)
	defer l.Close()
	c, err := transport.Dial(ctx, network, l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	p := &peer{TB: t, c: c}
	p.writes(append([]byte(requestKey), rest...))
	cr, err := l.Accept(ctx)
	require.NoError(t, err)
	return p, cr
}

// responder plays the responder for a QP that is made by Dial with revision 1.
func responder(t testing.TB, r *RNIC, network string, qc *QPConfig) (*peer, *QP) {
	t.Helper()
	if reordering != 0 {
		return overRecords(t, r, qc)
	}
	qc.MPA.Revision = 1
	addr := ""
	if network != "pipe" {
		addr = "127.0.0.1:0"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := transport.Listen(ctx, network, addr, transport.Options{})
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan *peer, 1)
	go func() {
		defer close(accepted)
		c, err := l.Accept()
		if err != nil {
			return
		}
		p := &peer{TB: t, c: c}
		p.reads(20)
		p.writes(append([]byte(replyKey), hx("40 01 00 00")...))
		accepted <- p
	}()
	qp, err := r.Dial(ctx, network, l.Addr().String(), qc)
	require.NoError(t, err)
	p := <-accepted
	require.NotNil(t, p)
	t.Cleanup(func() { _ = p.c.Close() })
	return p, qp
}

// writes sends raw octets.
func (p *peer) writes(b []byte) {
	p.Helper()
	require.NoError(p, p.c.SetWriteDeadline(time.Now().Add(patience)))
	_, err := p.c.Write(b)
	require.NoError(p, err)
}

// reads waits for n raw octets.
func (p *peer) reads(n int) []byte {
	p.Helper()
	require.NoError(p, p.c.SetReadDeadline(time.Now().Add(patience)))
	b := make([]byte, n)
	_, err := io.ReadFull(p.c, b)
	require.NoError(p, err)
	return b
}

func (p *peer) wantOctets(expectation string, want []byte) {
	p.Helper()
	require.Equal(p, want, p.reads(len(want)), expectation)
}

// fpdu frames a ULPDU (RFC 5044 section 4).
func fpdu(ulpdu []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	b = append(b, ulpdu...)
	b = append(b, make([]byte, -len(b)&3)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// sends sends one DDP segment, given in hexadecimal, with payload behind it.
func (p *peer) sends(what, header string, payload ...byte) {
	p.Helper()
	p.Log("peer sends", what)
	p.writes(fpdu(append(hx(header), payload...)))
}

// wantSegment waits for one DDP segment and compares all of it.
func (p *peer) wantSegment(expectation, header string, payload ...byte) {
	p.Helper()
	require.Equal(p, append(hx(header), payload...), p.segment(), expectation)
}

// segment waits for one FPDU with a good CRC and returns its ULPDU.
func (p *peer) segment() []byte {
	p.Helper()
	n := int(binary.BigEndian.Uint16(p.reads(2)))
	rest := p.reads(n + (-(2 + n) & 3) + 4)
	got := rest[:n]
	require.Equal(p, fpdu(got), append(binary.BigEndian.AppendUint16(nil, uint16(n)), rest...), "PAD and CRC are right")
	return got
}

// wantEnd waits for the graceful end of the other side's half.
func (p *peer) wantEnd(expectation string) {
	p.Helper()
	require.NoError(p, p.c.SetReadDeadline(time.Now().Add(patience)))
	n, err := p.c.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.ErrorIs(p, err, io.EOF, expectation)
}

// wantIdle makes sure that nothing comes for d.
func (p *peer) wantIdle(expectation string, d time.Duration) {
	p.Helper()
	require.NoError(p, p.c.SetReadDeadline(time.Now().Add(d)))
	n, err := p.c.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.True(p, errors.Is(err, os.ErrDeadlineExceeded), "%s: %v", expectation, err)
}

package wiretest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
)

// Patience bounds every wait of a Peer.
const Patience = 10 * time.Second

// A Peer is the other end of a connection, played by the test.
type Peer struct {
	testing.TB
	Conn net.Conn
}

// Hex turns hexadecimal digits into octets.
var Hex = octettest.Hex

// Write sends raw octets.
func (p *Peer) Write(b []byte) {
	p.Helper()
	require.NoError(p, p.Conn.SetWriteDeadline(time.Now().Add(Patience)))
	_, err := p.Conn.Write(b)
	require.NoError(p, err)
}

// Read waits for n raw octets.
func (p *Peer) Read(n int) []byte {
	p.Helper()
	require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(Patience)))
	b := make([]byte, n)
	_, err := io.ReadFull(p.Conn, b)
	require.NoError(p, err)
	return b
}

// Send sends DDP segments, each in an FPDU of its own, with one call of Write.
func (p *Peer) Send(segments ...[]byte) {
	p.Helper()
	var b []byte
	for _, s := range segments {
		b = append(b, FPDU(s)...)
	}
	p.Write(b)
}

// SendHex sends one DDP segment, given in hexadecimal, with payload after it.
func (p *Peer) SendHex(what, header string, payload ...byte) {
	p.Helper()
	p.Log("peer sends", what)
	p.Send(append(Hex(header), payload...))
}

// Segment waits for one FPDU with a good CRC and returns its ULPDU.
func (p *Peer) Segment() []byte {
	p.Helper()
	require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(Patience)))
	ulpdu, err := p.next()
	require.NoError(p, err)
	return ulpdu
}

// Rest waits for the graceful end of the other side's half, and returns the segments before it.
func (p *Peer) Rest() (segments [][]byte) {
	p.Helper()
	for {
		require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(Patience)))
		ulpdu, err := p.next()
		if errors.Is(err, io.EOF) {
			return segments
		}
		require.NoError(p, err)
		segments = append(segments, ulpdu)
	}
}

// next reads an FPDU with a good CRC. It waits until the read deadline, or for Patience once the FPDU has begun.
func (p *Peer) next() ([]byte, error) {
	p.Helper()
	var size [2]byte
	if _, err := io.ReadFull(p.Conn, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	rest := p.Read(n + (-(2 + n) & 3) + 4)
	require.Equal(p, FPDU(rest[:n]), append(size[:], rest...), "PAD and CRC are right")
	return rest[:n], nil
}

// WantOctets waits for as many octets as want contains, and compares them.
func (p *Peer) WantOctets(expectation string, want []byte) {
	p.Helper()
	require.Equal(p, want, p.Read(len(want)), expectation)
}

// WantSegment waits for one DDP segment and compares all of it.
func (p *Peer) WantSegment(expectation, header string, payload ...byte) {
	p.Helper()
	require.Equal(p, append(Hex(header), payload...), p.Segment(), expectation)
}

// WantTerminate reads segments until the Terminate, and compares its layer, type and code.
func (p *Peer) WantTerminate(expectation string, code uint16) {
	p.Helper()
	for {
		ulpdu := p.Segment()
		if ulpdu[0]&0x80 == 0 && ulpdu[1]&0x0f == opTerminate {
			require.Equal(p, []byte{byte(code >> 8), byte(code)}, ulpdu[18:20], expectation)
			return
		}
	}
}

// WantEOF waits for the graceful end of the other side's half.
func (p *Peer) WantEOF(expectation string) {
	p.Helper()
	require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(Patience)))
	n, err := p.Conn.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.ErrorIs(p, err, io.EOF, expectation)
}

// WantClosed waits for the end of the connection, graceful or by a reset, without any octet before it.
func (p *Peer) WantClosed(expectation string) {
	p.Helper()
	require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(Patience)))
	n, err := p.Conn.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.True(p, errors.Is(err, io.EOF) || isReset(err), "%s: %v", expectation, err)
}

// isReset reports whether err is the error of a connection that was reset.
func isReset(err error) bool { return strings.Contains(err.Error(), syscall.ECONNRESET.Error()) }

// WantIdle checks that nothing arrives for d.
func (p *Peer) WantIdle(expectation string, d time.Duration) {
	p.Helper()
	require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(d)))
	n, err := p.Conn.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.True(p, errors.Is(err, os.ErrDeadlineExceeded), "%s: %v", expectation, err)
}

// CloseWrite ends the Peer's half of the connection.
func (p *Peer) CloseWrite() {
	p.Helper()
	require.NoError(p, p.Conn.(interface{ CloseWrite() error }).CloseWrite())
}

// Close closes the connection.
func (p *Peer) Close() {
	p.Helper()
	require.NoError(p, p.Conn.Close())
}

// Abort resets the connection.
func (p *Peer) Abort() {
	p.Helper()
	require.NoError(p, p.Conn.(interface{ Abort() error }).Abort())
}

// Cut ends the Peer's half, or resets the connection.
func (p *Peer) Cut(reset bool) {
	p.Helper()
	if reset {
		p.Abort()
	} else {
		p.CloseWrite()
	}
}

// Dribble sends b, and then zeros, one octet at a time until the connection has ended.
func (p *Peer) Dribble(b []byte, pause time.Duration) {
	for i := 0; ; i++ {
		next := []byte{0}
		if i < len(b) {
			next[0] = b[i]
		}
		if _, err := p.Conn.Write(next); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

//go:build unix

package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallSegments connects two ends of the loopback whose segments have at most size octets.
func smallSegments(t *testing.T, size int) (a, b *net.TCPConn) {
	t.Helper()
	limit := func(_, _ string, c syscall.RawConn) error {
		var err error
		controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, size) })
		return errors.Join(controlErr, err)
	}
	lc := net.ListenConfig{Control: limit}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := (&net.Dialer{Control: limit}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	server, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	return client.(*net.TCPConn), server.(*net.TCPConn)
}

// TestPlainStreamKnowsTheEMSS: so that an FPDU fits into a segment on this path as well.
func TestPlainStreamKnowsTheEMSS(t *testing.T) {
	const size = 1000
	a, b := smallSegments(t, size)
	s := NewPlainStream(a, nil)
	emss := s.EMSS()
	require.Positive(t, emss)
	require.LessOrEqual(t, emss, size)

	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := b.Read(buf); err != nil {
				return
			}
		}
	}()
	block := make([]byte, 64<<10)
	_, err := s.Write([][]byte{block}, true)
	require.NoError(t, err)
	s.(*connStream).mss.size.Store(1)
	require.Equal(t, 1, s.EMSS(), "it is remembered")
	for range mssEvery / len(block) {
		_, err := s.Write([][]byte{block}, true)
		require.NoError(t, err)
	}
	require.Equal(t, emss, s.EMSS(), "and asked for again")
}

func TestWrappedStreamHasNoEMSS(t *testing.T) {
	a, _ := smallSegments(t, 1000)
	require.Zero(t, NewPlainStream(tls.Client(a, &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "x"}), nil).EMSS())
	require.Zero(t, NewPlainStream(struct{ net.Conn }{a}, nil).EMSS())
}

func TestEMSSOfAClosedConnection(t *testing.T) {
	a, _ := smallSegments(t, 1000)
	s := NewPlainStream(a, nil)
	require.NoError(t, s.Close())
	require.Zero(t, s.EMSS())
}

package mpa

import (
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
)

// overTCP makes both ends of a connection over loopback TCP.
func overTCP(t testing.TB, o Options) (a, b *Conn) {
	t.Helper()
	p, err := transport.NewPoller()
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan result, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			accepted <- result{err: err}
			return
		}
		accepted <- accept(t.Context(), transport.NewStream(c, p), o, 8, 8, "")()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	x := connect(t.Context(), transport.NewStream(c, p), o, 8, 8, "")()
	y := <-accepted
	require.NoError(t, x.err)
	require.NoError(t, y.err)
	t.Cleanup(func() {
		x.conn.Abort(nil)
		y.conn.Abort(nil)
	})
	return x.conn, y.conn
}

func TestOverTCP(t *testing.T) {
	for _, o := range []Options{{}, {NoCRC: true}, {Markers: true}, {MaxULPDU: 1000}} {
		a, b := overTCP(t, o)
		exchangeSegments(t, a, b)
		require.NoError(t, a.Close())
		require.Error(t, placertest.Receive(b, &collector{}), "the end is seen")
	}
}

func TestArmedConnReceives(t *testing.T) {
	a, b := overTCP(t, Options{})
	got, p := make(chan error, 1), &collector{}
	if !b.Arm(func() { got <- drain(b, p) }) {
		t.Skip("this stream cannot be armed")
	}
	require.True(t, a.Append(octets(30), nil, true))
	require.NoError(t, a.Flush(true))
	select {
	case err := <-got:
		require.ErrorIs(t, err, transport.ErrAgain)
	case <-time.After(10 * time.Second):
		require.Fail(t, "ready was never called")
	}
	require.Equal(t, [][]byte{octets(30)}, p.ulpdus)
	require.Nil(t, b.in.class, "an idle connection holds no memory")
}

// BenchmarkSegments sends segments of 60,000 octets one way over loopback TCP.
func BenchmarkSegments(b *testing.B) {
	for _, v := range []struct {
		name  string
		o     Options
		stage bool
	}{
		{"crc", Options{}, false},
		{"crc-staged", Options{}, true},
		{"plain", Options{NoCRC: true}, false},
		{"markers", Options{Markers: true}, false},
	} {
		b.Run(v.name, func(b *testing.B) {
			x, y := overTCP(b, v.o)
			payload := [][]byte{octets(60000 - 14)}
			done := make(chan error, 1)
			go func() { done <- placertest.Receive(y, &placertest.Counter{Left: math.MaxInt}) }()
			b.SetBytes(60000)
			for b.Loop() {
				for !x.Append(payload[0][:14], payload, v.stage) {
					if err := x.Flush(true); err != nil {
						b.Fatal(err)
					}
				}
			}
			require.NoError(b, x.Flush(true))
			require.NoError(b, x.CloseSend())
			require.Equal(b, io.EOF, <-done)
		})
	}
}

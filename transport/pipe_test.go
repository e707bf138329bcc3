package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
)

func TestPipeIsANetConn(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    PipeOptions
	}{
		{"default", PipeOptions{}},
		{"few octets in flight", PipeOptions{Limit: 100}},
		{"latency", PipeOptions{Latency: time.Microsecond}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
				a, b = Pipe(tc.o)
				return a, b, func() { _, _ = a.Close(), b.Close() }, nil
			})
		})
	}
}

func TestPipeLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(PipeOptions{Latency: 30 * time.Millisecond})
		defer a.Close()
		defer b.Close()
		start := time.Now()
		mustWrite(t, a, "early")
		time.Sleep(10 * time.Millisecond)
		mustWrite(t, a, "late")
		require.NoError(t, a.(*pipeConn).CloseWrite(), "the sending half closes")

		buf := make([]byte, 100)
		n, err := b.Read(buf)
		require.NoError(t, err, "what was written first is read")
		require.Equal(t, "early", string(buf[:n]), "nothing arrives before its time")
		require.Equal(t, 30*time.Millisecond, time.Since(start), "the first octets take the latency")
		n, err = b.Read(buf)
		require.NoError(t, err, "what was written later is read")
		require.Equal(t, "late", string(buf[:n]), "the rest arrives")
		require.Equal(t, 40*time.Millisecond, time.Since(start), "the rest takes the latency too")
		_, err = b.Read(buf)
		require.Equal(t, io.EOF, err, "the end of the stream comes last")
		require.Equal(t, 40*time.Millisecond, time.Since(start), "the end comes right after the octets")
	})
}

func TestPipeEndOfStreamTakesTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(PipeOptions{Latency: time.Second})
		defer b.Close()
		start := time.Now()
		require.NoError(t, a.Close(), "one end closes")
		_, err := b.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err, "the other end reads the end of the stream")
		require.Equal(t, time.Second, time.Since(start), "it travels as octets do")
	})
}

func TestPipeLimitHoldsTheWriterBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(PipeOptions{Limit: 4})
		defer a.Close()
		defer b.Close()
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Second)), "a deadline is set")
		n, err := a.Write([]byte("abcdefgh"))
		require.Equal(t, 4, n, "no more goes out than the limit")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the writer waits for room")
		require.NoError(t, a.SetWriteDeadline(time.Time{}), "the deadline is taken away")
		go mustWrite(t, a, "efgh")
		got := make([]byte, 8)
		_, err = io.ReadFull(b, got)
		require.NoError(t, err, "the reader makes room")
		require.Equal(t, "abcdefgh", string(got), "nothing is lost or repeated")
	})
}

func TestPipeReset(t *testing.T) {
	for _, tc := range []struct {
		name string
		shut func(c *pipeConn) error
		want error
	}{
		{"abort", (*pipeConn).Abort, syscall.ECONNRESET},
		{"close with octets unread", (*pipeConn).Close, syscall.ECONNRESET},
		{"close with all read", func(c *pipeConn) error {
			_, _ = c.Read(make([]byte, 10))
			return c.Close()
		}, io.EOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := Pipe(PipeOptions{})
			defer b.Close()
			mustWrite(t, b, "unread")
			require.NoError(t, tc.shut(a.(*pipeConn)), "one end goes")
			_, err := b.Read(make([]byte, 1))
			require.ErrorIs(t, err, tc.want, "the other end learns how")
			_, err = b.Write([]byte("x"))
			require.ErrorIs(t, err, syscall.ECONNRESET, "the end that went takes no octets any more")
			_, err = a.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed, "the end that went says so")
			_, err = a.Write([]byte("x"))
			require.ErrorIs(t, err, net.ErrClosed, "the end that went says so")
			require.ErrorIs(t, a.Close(), net.ErrClosed, "it goes once")
		})
	}
}

func TestPipeHalfClose(t *testing.T) {
	a, b := Pipe(PipeOptions{})
	defer a.Close()
	defer b.Close()
	mustWrite(t, a, "last words")
	require.NoError(t, a.(*pipeConn).CloseWrite(), "one half closes")
	_, err := a.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE, "the closed half takes nothing")
	got, err := io.ReadAll(b)
	require.NoError(t, err, "the peer reads to the end")
	require.Equal(t, "last words", string(got), "all octets come before the end")
	mustWrite(t, b, "answer")
	n, err := a.Read(make([]byte, 10))
	require.NoError(t, err, "the other half still works")
	require.Equal(t, 6, n, "the answer arrives")
}

func TestPipeNetwork(t *testing.T) {
	ctx := context.Background()
	l, err := Listen(ctx, "pipe", "", Options{Pipe: PipeOptions{Limit: 3}})
	require.NoError(t, err, "a name is made up")
	addr := l.Addr().String()
	_, err = Listen(ctx, "pipe", addr, Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE, "a name is used once")

	c, err := Dial(ctx, "pipe", addr, Options{})
	require.NoError(t, err, "the listener is found")
	defer c.Close()
	s, err := l.Accept()
	require.NoError(t, err, "the connection is accepted")
	defer s.Close()
	require.Equal(t, c.LocalAddr(), s.RemoteAddr(), "the ends agree on the addresses")
	require.Equal(t, l.Addr(), c.RemoteAddr(), "the dialed address is the listener's")
	require.Equal(t, "pipe", c.LocalAddr().Network(), "the network is named")
	mustWrite(t, c, "abc")
	require.NoError(t, c.SetWriteDeadline(longAgo), "a deadline is set")
	_, err = c.Write([]byte("d"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the listener's options apply")

	lost, err := Dial(ctx, "pipe", addr, Options{})
	require.NoError(t, err, "connections queue up")
	require.NoError(t, l.Close(), "the listener closes")
	_, err = lost.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET, "a connection that was not accepted is reset")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "a closed listener accepts nothing")
	require.ErrorIs(t, l.Close(), net.ErrClosed, "it closes once")
	_, err = Dial(ctx, "pipe", addr, Options{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the name is free again")
}

func TestPipeBacklogIsBounded(t *testing.T) {
	l, err := Listen(context.Background(), "pipe", "", Options{})
	require.NoError(t, err, "a listener")
	defer l.Close()
	for range pipeBacklog {
		_, err := Dial(context.Background(), "pipe", l.Addr().String(), Options{})
		require.NoError(t, err, "the backlog takes it")
	}
	_, err = Dial(context.Background(), "pipe", l.Addr().String(), Options{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "a full backlog refuses")
}

func TestUnknownNetwork(t *testing.T) {
	var unknown net.UnknownNetworkError
	_, err := Dial(context.Background(), "udp", "127.0.0.1:1", Options{})
	require.ErrorAs(t, err, &unknown, "Dial over a network that it does not have")
	_, err = Listen(context.Background(), "udp", "127.0.0.1:0", Options{})
	require.ErrorAs(t, err, &unknown, "Listen on a network that it does not have")
	_, err = Dial(context.Background(), "", "127.0.0.1:1", Options{})
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, err, "dial: the network is empty")
	_, err = Listen(context.Background(), "", "127.0.0.1:1", Options{})
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, err, "listen: the network is empty")
	done, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Dial(done, "pipe", "no listener", Options{})
	require.ErrorIs(t, err, context.Canceled, "a context that is done stops Dial")
}

func mustWrite(t *testing.T, c net.Conn, s string) {
	t.Helper()
	n, err := c.Write([]byte(s))
	require.NoError(t, err, "%q is written", s)
	require.Equal(t, len(s), n, "%q is written whole", s)
}

// TestPipeNameOfItsChoice is one that is free.
func TestPipeNameOfItsChoice(t *testing.T) {
	first, err := Listen(t.Context(), "pipe", "", Options{})
	require.NoError(t, err)
	defer first.Close()
	var n int
	_, err = fmt.Sscanf(first.Addr().String(), "pipe-%d", &n)
	require.NoError(t, err)
	taken, err := Listen(t.Context(), "pipe", fmt.Sprintf("pipe-%d", n+1), Options{})
	require.NoError(t, err)
	defer taken.Close()
	second, err := Listen(t.Context(), "pipe", "", Options{})
	require.NoError(t, err)
	require.NoError(t, second.Close())
}
